"""The options of queues on the command line: --retry-limit 5, --expire-in 15m, --no-retry-backoff, --heartbeat none."""

import argparse
from collections.abc import Callable, Mapping

from trioboss.cli.times import parse_seconds

__all__ = ["QUEUE_OPTIONS", "add_queue_options", "given_options"]

_NONE = "none"
_PARSERS: dict[str, Callable[[str], object]] = {
    "count": int,
    "fraction": float,
    "number": float,
    "duration": parse_seconds,
    "text": str,
}

QUEUE_OPTIONS = {
    "policy": ("text", "standard, short, singleton, stately, exclusive or key_strict_fifo"),
    "partition": ("flag", "a table of its own"),
    "dead_letter": ("text", "the queue that failed jobs are copied to; none: no queue"),
    "warning_queue_size": ("count", "warn when more jobs wait; none: never"),
    "retry_limit": ("count", "retries of a job (2)"),
    "retry_delay": ("duration", "the pause before a retry (0)"),
    "retry_backoff": ("flag", "a longer pause after each failure"),
    "retry_delay_max": ("duration", "the longest pause; none: without a limit"),
    "retry_jitter": ("fraction", "the random part of a pause, 0 to 1"),
    "retry_multiplier": ("number", "how much longer each pause is, 1 to 100 (2)"),
    "retry_window": ("duration", "the backoff starts again after so long without a failure; none: never"),
    "expire_in": ("duration", "how long a job may run (15m)"),
    "heartbeat": ("duration", "how often a running job reports; none: never"),
    "auto_heartbeat": ("flag", "the worker reports for it"),
    "max_lease_extensions": ("count", "how often a job may ask for more time (3)"),
    "commit_order": ("flag", "key_strict_fifo: in the order of commits"),
    "retention": ("duration", "how long a job may wait (14d)"),
    "delete_after": ("duration", "how long ended jobs are kept (7d; 0: for ever)"),
    "keep_completed": ("flag", "keep completed jobs"),
}
"""By name: what its value is, and what it means."""


def _parse(kind: str) -> Callable[[str], object]:
    """The parser of a value. `none` is no value, for options that have none by default."""

    def parse(text: str) -> object:
        if text == _NONE:
            return _NONE
        try:
            return _PARSERS[kind](text)
        except ValueError as error:
            example = " like 90s, 15m or 2h" if kind == "duration" else ""
            raise argparse.ArgumentTypeError(f"{text!r} is not a {kind}{example}") from error

    return parse


def add_queue_options(parser: argparse.ArgumentParser, options: Mapping[str, tuple[str, str]]) -> None:
    """Describe the options to the parser of a command."""
    for name, (kind, text) in options.items():
        option = f"--{name.replace('_', '-')}"
        if kind == "flag":
            parser.add_argument(option, action=argparse.BooleanOptionalAction, help=text)
        else:
            metavar = {"count": "N", "fraction": "X", "number": "X", "duration": "TIME", "text": "NAME"}[kind]
            parser.add_argument(option, type=_parse(kind), metavar=metavar, help=text)


def given_options(args: argparse.Namespace) -> dict[str, object]:
    """The options that were given."""
    given = {name: getattr(args, name, None) for name in QUEUE_OPTIONS}
    return {name: None if value == _NONE else value for name, value in given.items() if value is not None}
