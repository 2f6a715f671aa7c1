"""The commands of `trioboss`, from their parser."""

import argparse
from collections.abc import Iterator, Mapping

from trioboss.cli.parser import PAGE_OF, make_parser

__all__ = ["describe_command", "describe_commands", "find_commands"]

_SHARED = ("help", "dsn", "schema", "config", "json")
"""Options that many commands have; the page describes them once."""


def find_commands() -> Mapping[str, argparse.ArgumentParser]:
    """The parser of each command, by its name."""
    for action in make_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            found: Mapping[str, argparse.ArgumentParser] = action.choices
            return found
    raise AssertionError


def describe_commands() -> str:
    """A section for each command: what it does, how it is called, and its arguments."""
    return "\n".join(
        line for name, parser in find_commands().items() for line in describe_command(name, parser)
    )


def describe_command(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """The lines of the section of one command."""
    yield f"## trioboss {name}\n"
    yield f"{parser.description}\n"
    yield f"```text\n{_usage(name, parser)}\n```\n"
    shown = [action for action in parser._actions if action.dest not in _SHARED and _is_shown(action)]
    if shown:
        yield "| argument | default | meaning |"
        yield "|---|---|---|"
        for action in shown:
            yield f"| {_name(action)} | {_default(action)} | {_escape(action.help or '')} |"
        yield ""
    # The last line is the address of the page, which is a link here.
    if epilog := (parser.epilog or "").partition("Documentation: ")[0].rstrip():
        yield f"```text\n{epilog}\n```\n"
    if name in PAGE_OF:
        # Without a text of its own the link has the title of the page.
        yield f"See [](../{PAGE_OF[name]}).\n"


def _usage(name: str, parser: argparse.ArgumentParser) -> str:
    """The arguments that have to be given, and whether there are others."""
    words = [
        f"{action.option_strings[0]} {_value(action)}"
        for action in parser._actions
        if action.required and action.option_strings
    ]
    for action in (action for action in parser._actions if not action.option_strings):
        word = str(action.metavar or action.dest).upper()
        optional = action.nargs in ("?", "*", argparse.REMAINDER)
        more = " …" if action.nargs in ("*", "+") else ""
        words.append(f"[{word}{more}]" if optional else f"{word}{more}")
    return " ".join(["trioboss", name, *words, "[options]"])


def _is_shown(action: argparse.Action) -> bool:
    return action.help is not argparse.SUPPRESS


def _name(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{str(action.metavar or action.dest).upper()}`"
    value = "" if action.nargs == 0 else f" {_value(action)}"
    if action.nargs == "?":
        value = f" [{_value(action)}]"
    return ", ".join(f"`{option}{value}`" for option in action.option_strings).replace("|", r"\|")


def _value(action: argparse.Action) -> str:
    if action.choices is not None and action.metavar is None:
        return "|".join(map(str, action.choices))
    return str(action.metavar or action.dest.upper())


def _default(action: argparse.Action) -> str:
    if action.nargs == 0 or action.default in (None, "", [], argparse.SUPPRESS):
        return ""
    return f"`{action.default}`"


def _escape(text: str) -> str:
    return text.replace("|", r"\|").replace("%%", "%").replace("<", r"\<")
