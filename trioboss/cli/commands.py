"""The parser, and how a command is run. A user's mistake is one sentence and exit code 1 or 2, never a traceback."""

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial

import trio

from trioboss._version import __version__
from trioboss.cli.admin import Command, add_admin_commands, print_plan
from trioboss.cli.dashboard import add_dashboard_command, dashboard
from trioboss.cli.demo import demo
from trioboss.cli.doctor import doctor
from trioboss.cli.grants import add_grants_command, grants
from trioboss.cli.opening import open_for
from trioboss.cli.output import print_error
from trioboss.cli.pipeline import add_pipeline_command, run_pipeline
from trioboss.cli.worker import add_worker_command, run_worker
from trioboss.errors import SchemaOutOfDate, TriobossError, UsageError
from trioboss.postgres.dsn import has_password
from trioboss.postgres.errors import is_permission_denied
from trioboss.sql import check_schema

__all__ = ["make_parser", "run"]


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="trioboss", description="A Postgres job queue for structured concurrency."
    )
    parser.add_argument("--version", action="version", version=f"trioboss {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, text: str, run: object, *, json: bool = False) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        command.add_argument(
            "--dsn", help="the database (default: TRIOBOSS_DSN, DATABASE_URL, or an embedded Postgres)"
        )
        command.add_argument("--schema", default="trioboss")
        if json:
            command.add_argument("--json", action="store_true", help="print JSON")
        command.set_defaults(run=run)
        return command

    add_worker_command(add)
    parser_demo = add("demo", "measure latency and throughput on an embedded Postgres", None)
    parser_demo.add_argument(
        "--seconds", type=float, default=8.0, help="how long to send jobs one after the other"
    )
    parser_demo.add_argument(
        "--dashboard",
        metavar="[HOST:]PORT",
        nargs="?",
        const="8020",
        help="serve the dashboard, and go on until Ctrl-C",
    )
    add_dashboard_command(add)
    add("doctor", "check connection, schema, notifications and health, with advice", None, json=True)
    add_admin_commands(add)
    add_grants_command(add)
    add_pipeline_command(commands.add_parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Run a command; return its exit code."""
    args = make_parser().parse_args(arguments)
    if args.dsn and has_password(args.dsn):
        print_error("others can see the password on the command line: use TRIOBOSS_DSN or a passfile")
    try:
        return _run(args)
    except UsageError as error:
        print_error(str(error))
        return 2
    except TriobossError as error:
        print_error(str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The program that reads our output, like head, has closed the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if not is_permission_denied(error):
            raise
        print_error(f"{error.args[0]}: see `trioboss grants`")
        return 1


def _run(args: argparse.Namespace) -> int:
    try:
        check_schema(args.schema)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if args.command == "worker":
        return run_worker(args)
    if args.command == "pipeline":
        return run_pipeline(args)
    if args.command == "demo":
        return trio.run(demo, args)
    if args.command == "dashboard":
        return trio.run(dashboard, args)
    if args.command == "doctor":
        return trio.run(doctor, args)
    if args.command == "grants":
        return grants(args)
    if args.command == "migrate" and args.plan:
        return trio.run(_plan, args)
    return trio.run(partial(_call, args.run), args)


async def _call(command: Command, args: argparse.Namespace) -> int:
    """Run a command that needs a boss."""
    async with open_for(args, migrate=True if args.command == "migrate" else None) as boss:
        return await command(boss, args)
    raise AssertionError


async def _plan(args: argparse.Namespace) -> int:
    try:
        async with open_for(args, migrate=False) as boss:
            return print_plan(args.schema, await boss.schema_version() or 0)
    except SchemaOutOfDate as error:
        return print_plan(args.schema, error.found or 0)
