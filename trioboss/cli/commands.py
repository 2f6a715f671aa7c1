"""How a command is run. A user's mistake is one sentence and exit code 1 or 2, never a traceback."""

import argparse
import gc
import logging
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from trioboss.cli.output import print_error
from trioboss.cli.parser import make_parser
from trioboss.errors import UsageError

__all__ = ["make_parser", "run"]


def run(arguments: Sequence[str]) -> int:
    """Run a command; return its exit code."""
    try:
        args = _parse(arguments)
        args.schema = args.schema or os.environ.get("TRIOBOSS_SCHEMA") or "trioboss"
        function = find_function(args.run)
        if not gc.isenabled():
            gc.freeze()  # what was imported stays: the collector need not examine it
            gc.enable()
        _check(args)
        if args.command != "worker":
            # A command prints what concerns its user itself.
            logging.getLogger("trioboss").addHandler(logging.NullHandler())
        return function(args)
    except UsageError as error:
        print_error(str(error))
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The program that reads our output, like head, has closed the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        opening = import_module("trioboss.cli.opening")
        message = opening.explain(error)
        if message is None:
            raise
        print_error(message)
        code: int = opening.exit_code(error)
        return code


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = make_parser()
    args = parser.parse_args(arguments)
    if args.config is None:
        return args
    # Few commands have a file: the others do not import the parser of TOML.
    parsed: argparse.Namespace = import_module("trioboss.cli.config").parse_with_file(parser, arguments, args)
    return parsed


def find_function(path: str) -> Callable[[argparse.Namespace], int]:
    """The function `module:function` below trioboss.cli, which takes the arguments and returns the exit code."""
    module, _, name = path.partition(":")
    found: Callable[[argparse.Namespace], int] = getattr(import_module(f"trioboss.cli.{module}"), name)
    return found


def _check(args: argparse.Namespace) -> None:
    if args.dsn and import_module("trioboss.postgres.dsn").has_password(args.dsn):
        print_error("others can see the password on the command line: use TRIOBOSS_DSN or a passfile")
    try:
        import_module("trioboss.sql").check_schema(args.schema)
    except ValueError as error:
        raise UsageError(str(error)) from None
