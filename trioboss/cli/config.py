"""`--config FILE`: options of commands from a TOML file.

Top-level keys are options of all commands (dsn, schema), a table has those of one command:

    dsn = "postgresql://worker@db/jobs"
    schema = "jobs"

    [worker]
    processes = 4
    json-logs = true
"""

import argparse
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from trioboss.cli.parsing import find_commands, parse_arguments
from trioboss.errors import UsageError

__all__ = ["parse_with_file"]

_SHARED = ("dsn", "schema")


def parse_with_file(
    parser: argparse.ArgumentParser, arguments: Sequence[str], args: argparse.Namespace
) -> argparse.Namespace:
    """Parse the arguments again, with the options of the file that ``args`` names as defaults."""
    commands = find_commands(parser)
    command = commands[args.command]
    command.set_defaults(**_read_defaults(args.config, args.command, command, set(commands)))
    return parse_arguments(parser, arguments)


def _read_defaults(
    path: str, name: str, command: argparse.ArgumentParser, commands: set[str]
) -> dict[str, Any]:
    given = _read(path)
    tables = {key: value for key, value in given.items() if isinstance(value, dict)}
    if unknown := sorted(tables.keys() - commands):
        raise UsageError(
            f"config: {path}: there is no command {unknown[0]!r}{_nearest(unknown[0], commands)}"
        )
    shared = {key: value for key, value in given.items() if key not in tables}
    for key in shared:
        if key not in _SHARED:
            raise UsageError(
                f"config: {path}: {key!r} is not an option of all commands ({', '.join(_SHARED)}): "
                "put it into the table of its command"
            )
    actions = _options_of(command)
    defaults: dict[str, Any] = {}
    for key, value in {**shared, **tables.get(name, {})}.items():
        option = key.replace("_", "-")
        if option not in actions:
            raise UsageError(
                f"config: {path}: {name} has no option {key!r}{_nearest(option, actions)}: "
                f"use one of {', '.join(sorted(actions))}"
            )
        defaults[actions[option].dest] = _convert(path, key, value, actions[option])
    return defaults


def _options_of(command: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """The options by their long names. The first one counts: the others are short, or the negation of a flag."""
    found: dict[str, argparse.Action] = {}
    for action in command._actions:
        names = [name.removeprefix("--") for name in action.option_strings if name.startswith("--")]
        if names and action.dest not in ("help", "config"):
            found[names[0]] = action
    return found


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise UsageError(f"config: cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"config: {path} is not TOML: {error}") from None


def _nearest(name: str, known: Sequence[str] | set[str] | Mapping[str, Any]) -> str:
    found = get_close_matches(name, list(known), n=1)
    return f" (did you mean {found[0]!r}?)" if found else ""


def _convert(path: str, key: str, value: Any, action: argparse.Action) -> Any:
    """The value as the command line would give it."""
    is_flag = action.nargs == 0
    if is_flag != isinstance(value, bool):
        raise UsageError(
            f"config: {path}: {key}: {value!r} is not {'true or false' if is_flag else 'a value'}"
        )
    if is_flag:
        return value
    if isinstance(action.default, list) or action.__class__.__name__ == "_AppendAction":
        return [str(each) for each in (value if isinstance(value, list) else [value])]
    convert = action.type if callable(action.type) else str
    try:
        converted = convert(str(value))
    except (ValueError, argparse.ArgumentTypeError):
        raise UsageError(f"config: {path}: {key}: {value!r} is not a value of this option") from None
    if action.choices is not None and converted not in action.choices:
        raise UsageError(f"config: {path}: {key}: {value!r} is not one of {', '.join(action.choices)}")
    return converted
