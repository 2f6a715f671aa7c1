"""How a command is run. A user's mistake is one sentence and exit code 1 or 2, never a traceback."""

import argparse
import errno
import gc
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from trioboss.cli.output import print_error, print_failure
from trioboss.cli.parser import make_parser, page_of
from trioboss.cli.parsing import parse_arguments
from trioboss.errors import UsageError

__all__ = ["make_parser", "run"]

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


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
        with _quiet_logging(args.command):
            code = function(args)
        if sys.stdout is not None:  # None: it was closed before the start
            sys.stdout.flush()  # not when the interpreter exits, which would print its error
        return code
    except UsageError as error:
        print_failure(error, str(error), page_of(arguments))
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The program that reads our output, like head, has closed the pipe.
        _discard_output()
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _UNWRITABLE:
            _discard_output()
            print_error(f"the output cannot be written: {error.strerror}")
            return 1
        opening = import_module("trioboss.cli.opening")
        message = opening.explain(error)
        if message is None:
            raise
        print_failure(error, message, page_of(arguments))
        return int(opening.exit_code(error))


@contextmanager
def _quiet_logging(command: str) -> Iterator[None]:
    """Print no log lines: a command prints what concerns its user itself. Only a worker logs."""
    if command == "worker":
        yield
        return
    handlers: dict[str, logging.Handler] = {"trioboss": logging.NullHandler()}
    if command != "demo":  # which prints it itself
        handlers["trioboss.embedded"] = _EmbeddedNote()
    for name, handler in handlers.items():
        logging.getLogger(name).addHandler(handler)
    try:
        yield
    finally:
        for name, handler in handlers.items():
            logging.getLogger(name).removeHandler(handler)


class _EmbeddedNote(logging.Handler):
    """Tells once that the database is an embedded one: a command that was meant for another must not seem to work."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print it, and nothing from then on."""
        print_error(record.getMessage())
        logging.getLogger(record.name).removeHandler(self)


def _discard_output() -> None:
    """Let what was not written yet go nowhere, when the interpreter exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = make_parser()
    args = parse_arguments(parser, arguments)
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
