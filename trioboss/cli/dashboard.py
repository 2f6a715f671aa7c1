"""`trioboss dashboard`, and the dashboard beside a worker or the demo."""

import argparse
import math
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

import trio

from trioboss.cli.health import parse_address
from trioboss.cli.opening import explain, open_sync
from trioboss.cli.output import print_error
from trioboss.cli.signals import is_stopped_within, receive_stop_signals
from trioboss.errors import DatabaseUnavailable, SchemaOutOfDate, StatementFailed, UsageError
from trioboss.postgres.embedded import find_dsn

__all__ = ["dashboard", "open_dashboard", "run_dashboard", "start_dashboard"]

_PASSWORD = "TRIOBOSS_DASHBOARD_PASSWORD"


def run_dashboard(args: argparse.Namespace) -> int:
    """Serve the dashboard until a signal stops it."""
    if find_dsn(args.dsn) is not None:
        _check_schema(args)
    return trio.run(dashboard, args)


def _check_schema(args: argparse.Namespace) -> None:
    """Say what every page will say. The dashboard starts nevertheless: the schema, or the database, may come later."""
    try:
        with open_sync(args, migrate=False) as boss:
            boss.get_queues()
    except (SchemaOutOfDate, DatabaseUnavailable, StatementFailed) as error:
        print_error(f"{explain(error)}; the dashboard has nothing to show until then")


async def dashboard(args: argparse.Namespace) -> int:
    """Serve the dashboard until a signal stops it."""
    act_dsn = args.act_dsn or (find_dsn(args.dsn) if args.act else None)
    if args.act and act_dsn is None:
        raise UsageError("act: needs the address of a database: --dsn, TRIOBOSS_DSN or --act-dsn")
    address = f"{args.host}:{args.port}"
    opening = open_dashboard(args.dsn, args.schema, address, act_dsn=act_dsn, redact=args.redact)
    with receive_stop_signals() as signals:
        async with opening as found:
            print(f"The dashboard is at {found} {'' if act_dsn else '(it only reads)'}", flush=True)
            await is_stopped_within(math.inf, signals)
    return 0


@asynccontextmanager
async def open_dashboard(
    dsn: str | None, schema: str, address: str, *, act_dsn: str | None, redact: list[str] | None = None
) -> AsyncIterator[str]:
    """Serve the dashboard for the length of a block; its address."""
    failure: Exception | None = None  # kept out of the nursery, which would wrap it in a group
    async with trio.open_nursery() as nursery:
        try:
            yield await start_dashboard(nursery, dsn, schema, address, act_dsn=act_dsn, redact=redact)
        except Exception as error:
            failure = error
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def start_dashboard(
    nursery: trio.Nursery,
    dsn: str | None,
    schema: str,
    address: str,
    *,
    act_dsn: str | None = None,
    redact: list[str] | None = None,
) -> str:
    """Serve the dashboard beside other tasks; its address."""
    host, port = parse_address(address, "dashboard")
    try:
        package = import_module("trioboss.dashboard")
        serving = import_module("trioboss.dashboard.serving")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("trioboss"):
            raise
        raise UsageError("dashboard: needs the extra: pip install 'trioboss[dashboard]'") from None
    password = os.environ.get(_PASSWORD)
    if not serving.is_loopback(host) and not password:
        raise UsageError(
            f"host: {host} can be reached from other machines: set {_PASSWORD}, the user is `operator`"
        )
    authorize = package.basic_auth({"operator": password}) if password else None
    app = package.make_app(dsn, act_dsn=act_dsn, schema=schema, authorize=authorize, redact=redact)
    found: Any = await nursery.start(serving.serve_dashboard, app, host, port)
    return str(found)
