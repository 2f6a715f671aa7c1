"""`trioboss worker`: runs an app until it is told to stop."""

import argparse
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial

import trio

from trioboss.api.app import App
from trioboss.api.boss import open_boss
from trioboss.cli.health import Metrics, parse_address, serve_health
from trioboss.cli.loading import load_app
from trioboss.cli.logs import set_up_logging
from trioboss.cli.output import complain
from trioboss.errors import TriobossError, UsageError
from trioboss.machines.restart import RestartMachine
from trioboss.model.check import check_duration
from trioboss.postgres.errors import is_permission_denied

__all__ = ["add_worker_command", "keep_process", "run_worker"]

_logger = logging.getLogger("trioboss.worker")

_STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_EXIT_PATIENCE = 7.0  # seconds after the grace until a handler that ignores everything is left behind
_LAST_PATIENCE = 3.0  # the same, after the second signal


def add_worker_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Describe the command to the parser."""
    parser = add("worker", "run the workers of an app", None)
    parser.add_argument("app", metavar="MODULE:APP")
    parser.add_argument("--queue", "-q", action="append", help="only these queues (may be repeated)")
    parser.add_argument("--concurrency", "-c", type=int, help="overrules what the app declares")
    parser.add_argument("--processes", "-p", type=int, default=1, help="run so many worker processes")
    parser.add_argument("--grace", type=float, default=30.0, help="seconds running jobs have when it stops")
    parser.add_argument(
        "--wait", type=float, default=30.0, help="seconds to wait for the database at the start"
    )
    parser.add_argument(
        "--health",
        metavar="[HOST:]PORT",
        help="serve /live, /ready and /metrics; further processes take the next ports",
    )
    parser.add_argument("--json-logs", action="store_true")
    parser.add_argument("--log-level", default="info", choices=("debug", "info", "warning", "error"))
    parser.add_argument("--exit-with-parent", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--no-migrate", action="store_true", help="never change the schema")


def run_worker(args: argparse.Namespace) -> int:
    """Run one worker process, or several."""
    set_up_logging(args.log_level, as_json=args.json_logs)
    app = load_app(args.app)
    _check(args, app)
    if args.processes > 1:
        return trio.run(_supervise_processes, args)
    code = trio.run(_work, args, app)
    # A thread that a handler left behind must not keep the process.
    sys.stderr.flush()
    os._exit(code)


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
    if args.health:
        parse_address(args.health)


async def _work(args: argparse.Namespace, app: App) -> int:
    code = 0
    with trio.CancelScope() as everything:
        async with trio.open_nursery() as nursery:
            started, stopping = trio.Event(), trio.Event()
            await nursery.start(_obey_signals, everything, stopping, args.grace)
            nursery.start_soon(_stop_starting, everything, started, stopping)
            if args.exit_with_parent:
                nursery.start_soon(_watch_parent, stopping)
            try:
                await _run_app(args, app, started, stopping)
            except TriobossError as error:
                complain(str(error))
                code = 2 if isinstance(error, UsageError) else 1
            except Exception as error:
                if not is_permission_denied(error):
                    raise
                complain(f"{error.args[0]}: see `trioboss grants`")
                code = 1
            nursery.cancel_scope.cancel()
    return code


async def _watch_parent(stopping: trio.Event) -> None:
    """Stop when the process that supervises this one is gone: its end of our standard input closes."""
    await trio.lowlevel.wait_readable(sys.stdin.fileno())
    stopping.set()


async def _stop_starting(everything: trio.CancelScope, started: trio.Event, stopping: trio.Event) -> None:
    """Who is told to stop while it waits for the database, or migrates it, has nothing to bring to an end."""
    await stopping.wait()
    if not started.is_set():
        everything.cancel()


async def _run_app(args: argparse.Namespace, app: App, started: trio.Event, stopping: trio.Event) -> None:
    """Probes are answered until the last job is given back: who drains is alive, and not ready."""
    failure: Exception | None = None  # kept out of the nursery, which would wrap it
    async with trio.open_nursery() as nursery:
        try:
            async with open_boss(
                args.dsn,
                schema=args.schema,
                grace=args.grace,
                migrate=not args.no_migrate,
                connect_wait=args.wait,
            ) as boss:
                if args.health:
                    await _start_health(nursery, Metrics(boss, started, stopping), args.health)
                await app.start(boss, queues=args.queue, concurrency=args.concurrency)
                started.set()
                await stopping.wait()
        except Exception as error:
            failure = error
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure


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
    """The first signal asks for a graceful stop, the second for an immediate one. Both give back what runs."""
    with trio.open_signal_receiver(*_stop_signals()) as signals:
        task_status.started()
        async for _ in signals:
            if stopping.is_set():
                everything.cancel()
                trio.lowlevel.spawn_system_task(_leave_behind, _LAST_PATIENCE)
            else:
                stopping.set()
                trio.lowlevel.spawn_system_task(_leave_behind, grace + _EXIT_PATIENCE)


def _stop_signals() -> list[signal.Signals]:
    """Those that ask us to stop. What `nohup` has us ignore stays ignored."""
    return [number for number in _STOP if signal.getsignal(number) is not signal.SIG_IGN]


async def _leave_behind(patience: float) -> None:
    """A handler that cannot be stopped does not keep the process for ever."""
    await trio.sleep(patience)
    complain("a handler did not end in time: leaving without it")
    os._exit(1)


# -- several processes


async def _supervise_processes(args: argparse.Namespace) -> int:
    """Start worker processes, restart those that die, pass signals on, and wait for all of them."""
    stopping = trio.Event()
    codes: list[int] = []
    processes: set[trio.Process] = set()
    async with trio.open_nursery() as nursery:
        await nursery.start(_pass_signals_on, processes, stopping)
        async with trio.open_nursery() as children:
            for place in range(args.processes):
                child = partial(
                    trio.lowlevel.open_process,
                    _child_command(args, place),
                    env=_child_environment(args),
                    stdin=subprocess.PIPE,
                    start_new_session=True,
                )
                children.start_soon(keep_process, child, processes, stopping, codes)
        nursery.cancel_scope.cancel()
    return max(codes, default=0)


def _child_environment(args: argparse.Namespace) -> dict[str, str]:
    """The dsn goes by the environment: it may hold a password, and everybody reads the process list."""
    return {**os.environ} if args.dsn is None else {**os.environ, "TRIOBOSS_DSN": args.dsn}


def _child_command(args: argparse.Namespace, place: int) -> list[str]:
    command = [sys.executable, "-m", "trioboss", "worker", args.app, "--exit-with-parent"]
    for name in ("schema", "concurrency", "grace", "wait", "log_level"):
        if (value := getattr(args, name)) is not None:
            command += [f"--{name.replace('_', '-')}", str(value)]
    for queue in args.queue or ():
        command += ["--queue", queue]
    if args.health:
        host, port = parse_address(args.health)
        command += ["--health", f"{host}:{port + place if port else 0}"]
    command += ["--json-logs"] if args.json_logs else []
    return command + (["--no-migrate"] if args.no_migrate else [])


async def keep_process(
    start: Callable[[], Awaitable[trio.Process]],
    processes: set[trio.Process],
    stopping: trio.Event,
    codes: list[int],
) -> None:
    """Run a process, again and again while it dies, until it is told to stop; add its last exit code."""
    machine = RestartMachine()
    while True:
        process = await start()
        processes.add(process)
        if stopping.is_set():
            process.terminate()
        code = await process.wait()
        processes.discard(process)
        if stopping.is_set():
            # Whom our signal met before it had begun has done nothing wrong.
            codes.append(0 if -code in _STOP else abs(code))
            return
        complain(f"worker process {process.pid} ended with {code}")
        if not machine.crashed(trio.current_time()):
            complain("worker processes end too often: giving up")
            codes.append(1)
            return


async def _pass_signals_on(
    processes: set[trio.Process], stopping: trio.Event, *, task_status: trio.TaskStatus[None]
) -> None:
    with trio.open_signal_receiver(*_stop_signals()) as signals:
        task_status.started()
        async for number in signals:
            stopping.set()
            for process in processes:
                process.send_signal(number)
