"""`trioboss worker --processes`: several worker processes, and the process that supervises them."""

import argparse
import logging
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from functools import partial

import trio

from trioboss.cli.health import parse_address
from trioboss.cli.logs import LogHandler
from trioboss.cli.signals import STOP_SIGNALS, receive_stop_signals
from trioboss.cli.stopping import Reports
from trioboss.machines.restart import RestartMachine

__all__ = ["keep_process", "supervise_processes"]

_logger = logging.getLogger("trioboss.worker")

_INTERRUPTED = 130  # the exit code of a command that Ctrl-C ends while it starts


async def supervise_processes(args: argparse.Namespace, log: LogHandler) -> int:
    """Start worker processes, restart those that die, forward signals, and wait for all of them."""
    stopping = trio.Event()
    codes: list[int] = []
    processes: set[trio.Process] = set()
    reports = Reports()
    async with trio.open_nursery() as nursery:
        await nursery.start(_forward_signals, processes, stopping)
        if log.is_terminal and not args.json_logs:
            nursery.start_soon(reports.show, log, stopping, args.grace)
        async with trio.open_nursery() as children:
            for number in range(args.processes):
                child = partial(_start_child, args, number, nursery, reports)
                children.start_soon(keep_process, child, processes, stopping, codes)
        nursery.cancel_scope.cancel()
    return max(codes, default=0)


async def _start_child(
    args: argparse.Namespace, number: int, nursery: trio.Nursery, reports: Reports
) -> trio.Process:
    """Start a worker process. Its standard input is a socket: its end means that we are gone, and the process writes
    to it how many jobs it waits for.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        process = await trio.lowlevel.open_process(
            _child_command(args, number),
            env=_child_environment(args),
            stdin=theirs.fileno(),
            start_new_session=True,
        )
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
    # Not in the nursery of the children: a process that a handler has left running keeps the socket open.
    nursery.start_soon(reports.read, process.pid, stream)
    return process


def _child_environment(args: argparse.Namespace) -> dict[str, str]:
    """The dsn is in the environment: it may contain a password, and every user can read the process list."""
    return {**os.environ} if args.dsn is None else {**os.environ, "TRIOBOSS_DSN": args.dsn}


def _child_command(args: argparse.Namespace, number: int) -> list[str]:
    command = [sys.executable, "-m", "trioboss", "worker", args.app, "--exit-with-parent"]
    for name in ("schema", "concurrency", "grace", "wait", "presence_grace", "log_level", "color"):
        if (value := getattr(args, name)) is not None:
            command += [f"--{name.replace('_', '-')}", str(value)]
    for queue in args.queue or ():
        command += ["--queue", queue]
    if args.dashboard and number == 0:
        command += ["--dashboard", args.dashboard, *(["--dashboard-act"] if args.dashboard_act else ())]
        for field in args.redact or ():
            command += ["--redact", field]
    if args.health:
        host, port = parse_address(args.health)
        command += ["--health", f"{host}:{port + number if port else 0}"]
    command += ["--json-logs"] if args.json_logs else []
    command += ["--embedded"] if args.embedded else []
    return command + (["--no-migrate"] if args.no_migrate else [])


async def keep_process(
    start: Callable[[], Awaitable[trio.Process]],
    processes: set[trio.Process],
    stopping: trio.Event,
    codes: list[int],
) -> None:
    """Run a process, restart it when it dies, until it is stopped; append its last exit code to ``codes``."""
    machine = RestartMachine()
    while True:
        process = await start()
        processes.add(process)
        if stopping.is_set():
            process.terminate()
        code = await process.wait()
        processes.discard(process)
        if stopping.is_set():
            # A process that our signal ended before it could handle signals has not failed.
            codes.append(0 if -code in STOP_SIGNALS or code == _INTERRUPTED else abs(code))
            return
        _logger.error(
            "worker process %d exited with code %d, restarting it: its own messages have the cause",
            process.pid,
            code,
        )
        if not machine.crashed(trio.current_time()):
            _logger.error("worker processes exit too often: giving up; see their own messages for the cause")
            codes.append(1)
            return


async def _forward_signals(
    processes: set[trio.Process], stopping: trio.Event, *, task_status: trio.TaskStatus[None]
) -> None:
    with receive_stop_signals() as signals:
        task_status.started()
        async for number in signals:
            again = "" if stopping.is_set() else "; Ctrl-C again to stop now"
            _logger.info("stopping %s%s", _count(len(processes)), again)
            stopping.set()
            for process in processes:
                process.send_signal(number)


def _count(processes: int) -> str:
    return "1 worker process" if processes == 1 else f"{processes} worker processes"
