"""Parses the command line: a command or an option that does not exist is answered with the nearest and with all."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module

__all__ = ["find_commands", "parse_arguments"]


def find_commands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """The parsers of the commands, by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found: Mapping[str, argparse.ArgumentParser] = action.choices
            return found
    raise AssertionError


def parse_arguments(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse; an unknown command or option is answered with the nearest one, and the usage lists all of them. Those of
    `trioboss psql` are for psql, which answers itself.
    """
    commands = find_commands(parser)
    first = arguments[0] if arguments else "-h"
    if not first.startswith("-") and first not in commands:
        known = ", ".join(commands)
        parser.error(f"there is no command {first!r}{_nearest(first, commands)}: the commands are {known}")
    if first.startswith("--") and not any(option.startswith(first) for option in ("--help", "--version")):
        parser.error(f"{first.partition('=')[0]} goes after the command: trioboss COMMAND {first} …")
    args, unknown = parser.parse_known_args(arguments)
    if args.command == "psql":
        args.passed = unknown
    elif unknown:
        command = commands[args.command]
        options = [option for action in command._actions for option in action.option_strings]
        command.error(f"unknown: {' '.join(unknown)}{_nearest(unknown[0].partition('=')[0], options)}")
    return args


def _nearest(name: str, known: Iterable[str]) -> str:
    # Imported here and not above: only a mistake needs it.
    found = import_module("difflib").get_close_matches(name, list(known), n=1)
    return f" (did you mean {found[0]!r}?)" if found else ""
