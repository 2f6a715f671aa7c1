"""`trioboss worker`: runs an app until a signal stops it."""

import argparse
import gc
import logging
import os
import sys

import trio

from trioboss.api.app import App
from trioboss.api.boss import open_boss
from trioboss.cli.banner import log_banner
from trioboss.cli.dashboard import start_dashboard
from trioboss.cli.health import Metrics, parse_address, serve_health
from trioboss.cli.loading import load_app
from trioboss.cli.logs import LogHandler, set_up_logging
from trioboss.cli.opening import exit_code, explain
from trioboss.cli.output import print_failure
from trioboss.cli.parser import page_of
from trioboss.cli.processes import supervise_processes
from trioboss.cli.signals import receive_stop_signals
from trioboss.cli.stopping import Show, report_stopping, report_to_supervisor, show_on
from trioboss.errors import UsageError
from trioboss.events import Event, Stopped
from trioboss.model.check import check_duration
from trioboss.model.texts import count
from trioboss.postgres.embedded import find_dsn

__all__ = ["run_worker"]

_logger = logging.getLogger("trioboss.worker")

_EXIT_AFTER_GRACE = 7.0  # seconds after the grace until the process exits although a handler still runs
_EXIT_AFTER_SIGNAL = 3.0  # the same, after the second signal
# Objects made, and not yet freed, from which on Python looks for cycles. Its default of 700 is reached a few times in
# each batch of jobs, all of which are freed without its help.
_COLLECTOR_THRESHOLD = 10_000


def run_worker(args: argparse.Namespace) -> int:
    """Run one worker process, or several."""
    log = set_up_logging(args.log_level, as_json=args.json_logs, color=args.color)
    log.shares_terminal = args.exit_with_parent and log.is_terminal and not args.json_logs
    app = load_app(args.app)
    _check(args, app)
    _check_database(args)
    if args.processes > 1:
        return trio.run(supervise_processes, args, log)
    _spare_collector()
    code = trio.run(_work, args, app, log)
    # os._exit: a thread that a cancelled handler has left running must not keep the process alive.
    sys.stderr.flush()
    os._exit(code)


def _spare_collector() -> None:
    """Keep the garbage collector from searching, again and again, what lives as long as the process: all modules. That
    was a quarter of the worker's CPU for a small job. A threshold that the app has set counts.
    """
    gc.collect()
    gc.freeze()
    if gc.isenabled() and 0 < gc.get_threshold()[0] < _COLLECTOR_THRESHOLD:
        gc.set_threshold(_COLLECTOR_THRESHOLD, *gc.get_threshold()[1:])


def _check(args: argparse.Namespace, app: App) -> None:
    declared = {worker.queue for worker in app.workers}
    if unknown := set(args.queue or ()) - declared:
        raise UsageError(f"queue: the app has no worker for {min(unknown)!r}, only for {sorted(declared)}")
    if not declared:
        raise UsageError(f"app: {args.app} declares no worker")
    if args.processes < 1:
        raise UsageError(f"processes: {args.processes} is not a number of processes")
    if args.concurrency is not None and args.concurrency < 1:
        raise UsageError(f"concurrency: {args.concurrency} is not a number of jobs")
    check_duration("grace", args.grace)
    check_duration("wait", args.wait)
    for field in ("health", "dashboard"):
        if address := getattr(args, field):
            parse_address(address, field)
    for option in ("dashboard_act", "redact"):
        if getattr(args, option) and not args.dashboard:
            raise UsageError(f"{option.replace('_', '-')}: is for a dashboard: add --dashboard")


def _check_database(args: argparse.Namespace) -> None:
    """Use the embedded server only where somebody asked for it, or can read that it is used."""
    if find_dsn(args.dsn) is not None:
        return
    if not args.embedded and not sys.stderr.isatty():
        raise UsageError(
            "no database is named: use --dsn, TRIOBOSS_DSN or DATABASE_URL; --embedded uses the embedded Postgres"
        )
    args.embedded = True


async def _work(args: argparse.Namespace, app: App, log: LogHandler) -> int:
    code = 0
    with trio.CancelScope() as everything:
        async with trio.open_nursery() as nursery:
            started, stopping = trio.Event(), trio.Event()
            await nursery.start(_obey_signals, everything, stopping, args.grace)
            nursery.start_soon(_stop_starting, everything, started, stopping)
            if args.exit_with_parent:
                nursery.start_soon(_stop_without_parent, stopping)
            try:
                code = await _run_app(args, app, log, started, stopping)
            except Exception as error:
                message = explain(error)
                if message is None:
                    raise
                print_failure(error, message, page_of(["worker"]))
                code = exit_code(error)
            nursery.cancel_scope.cancel()
    return code


async def _stop_without_parent(stopping: trio.Event) -> None:
    """Stop when the supervising process is gone: our standard input, a pipe from it, is then closed."""
    await trio.lowlevel.wait_readable(sys.stdin.fileno())
    stopping.set()


async def _stop_starting(everything: trio.CancelScope, started: trio.Event, stopping: trio.Event) -> None:
    """Stop at once while the worker still waits for the database, or migrates it: no job is running yet."""
    await stopping.wait()
    if not started.is_set():
        everything.cancel()


async def _run_app(
    args: argparse.Namespace, app: App, log: LogHandler, started: trio.Event, stopping: trio.Event
) -> int:
    """Run the app; return the exit code, which is 1 if an outcome could not be settled. Probes are answered until the
    last job is released: a stopping worker is alive, and not ready.
    """
    failure: Exception | None = None  # kept out of the nursery, which would wrap it in a group
    ended: list[Event] = []
    async with trio.open_nursery() as nursery:
        try:
            async with open_boss(
                args.dsn,
                schema=args.schema,
                grace=args.grace,
                migrate=not args.no_migrate,
                connect_wait=args.wait,
                **({} if args.presence_grace is None else {"presence_grace": args.presence_grace}),
            ) as boss:
                boss.listen(ended.append, Stopped)
                if args.health:
                    await _start_health(nursery, Metrics(boss, started, stopping), args.health)
                if args.dashboard:
                    await _start_dashboard(nursery, args, boss.dsn)
                await log_banner(boss, app, args.queue, args.concurrency)
                await app.start(
                    boss, queues=args.queue, concurrency=args.concurrency, declare=not args.no_migrate
                )
                started.set()
                queues = set(args.queue or [worker.queue for worker in app.workers])
                _logger.info("taking jobs of %s", count(len(queues), "queue"))
                await stopping.wait()
                nursery.start_soon(report_stopping, boss, args.grace, log, _find_display(args, log))
        except Exception as error:
            failure = error
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return 1 if any(isinstance(event, Stopped) and event.unsettled for event in ended) else 0


async def _start_dashboard(nursery: trio.Nursery, args: argparse.Namespace, dsn: str) -> None:
    act_dsn = dsn if args.dashboard_act else None
    address = await start_dashboard(
        nursery, dsn, args.schema, args.dashboard, act_dsn=act_dsn, redact=args.redact
    )
    _logger.info("serving the dashboard at %s", address)


def _find_display(args: argparse.Namespace, log: LogHandler) -> Show | None:
    """Where the progress of a stop is kept up to date, if anywhere. The processes of a supervisor share one terminal:
    its last line belongs to the supervisor.
    """
    if args.json_logs or not log.is_terminal:
        return None
    return report_to_supervisor() if args.exit_with_parent else show_on(log)


async def _start_health(nursery: trio.Nursery, metrics: Metrics, address: str) -> None:
    nursery.start_soon(metrics.run)
    host, _ = parse_address(address)
    port = await nursery.start(serve_health, metrics, parse_address(address))
    _logger.info("serving /live, /ready and /metrics at http://%s:%d", host, port)


async def _obey_signals(
    everything: trio.CancelScope,
    stopping: trio.Event,
    grace: float,
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    """The first signal stops gracefully, the second at once. In both cases jobs that still run are released."""
    with receive_stop_signals() as signals:
        task_status.started()
        async for _ in signals:
            if stopping.is_set():
                everything.cancel()
                trio.lowlevel.spawn_system_task(_exit_after, _EXIT_AFTER_SIGNAL)
            else:
                stopping.set()
                trio.lowlevel.spawn_system_task(_exit_after, grace + _EXIT_AFTER_GRACE)


async def _exit_after(seconds: float) -> None:
    """Exit although a handler still runs: one that ignores its cancellation must not keep the process for ever."""
    await trio.sleep(seconds)
    _logger.error("a handler ignores its cancellation: exiting without it; let trio.Cancelled pass")
    os._exit(1)
