"""The jobs that a stopping worker waits for: kept up to date on a terminal, logged now and then elsewhere.

The processes of a supervisor share one terminal. Each one reports to the supervisor, on a socket that is its standard
input, and the supervisor keeps one line for all of them.
"""

import json
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterable

import attrs
import trio

from trioboss.api.boss import Boss
from trioboss.cli.logs import LogHandler
from trioboss.model.texts import count, show_seconds

__all__ = ["Reports", "Running", "Show", "report_stopping", "report_to_supervisor", "show_on"]

_logger = logging.getLogger("trioboss.worker")

_REFRESH = 0.25  # seconds between two updates on a terminal
_REPEAT = 10.0  # seconds between two lines elsewhere


@attrs.frozen
class Running:
    """The jobs that a stopping worker waits for."""

    jobs: int
    longest: tuple[str, str, float] | None = None
    """The job that has been running for longest: its queue, its id, and for how many seconds."""

    def describe(self, left: float) -> str:
        """A line, with the most urgent part first: a narrow terminal shows only its beginning."""
        if not self.jobs:
            return "stopping: no job is running"
        text = f"stopping: {_show_whole(left)} left, Ctrl-C again to stop now; {count(self.jobs, 'job')}"
        if self.longest is None:
            return text
        queue, id, seconds = self.longest
        # The id last: it is what a terminal of 80 columns has no room for.
        return f"{text}, longest {_show_whole(seconds)}: {queue} {id}"


def _show_whole(seconds: float) -> str:
    """A duration in whole seconds: a line that is written again and again must not change its length each time."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else show_seconds(whole)


Show = Callable[[Running, float], None]
"""Shows the jobs that still run, and the seconds that they have left."""


def _total(parts: Iterable[Running]) -> Running:
    """The jobs of several processes."""
    listed = list(parts)
    longest = max(filter(None, (each.longest for each in listed)), key=lambda job: job[2], default=None)
    return Running(sum(each.jobs for each in listed), longest)


def _measure(boss: Boss) -> Running:
    return _total(
        Running(each.running, each.longest and (each.longest[0], str(each.longest[1]), each.longest[2]))
        for each in boss.statistics().workers
    )


async def report_stopping(boss: Boss, grace: float, log: LogHandler, show: Show | None) -> None:
    """Show what the worker waits for until cancelled. Without ``show``, log it now and then.

    The boss itself has logged it at once, unless no job is running.
    """
    deadline = trio.current_time() + grace

    def write(running: Running, left: float) -> None:
        _logger.info("%s", running.describe(left))

    if not (running := _measure(boss)).jobs:
        write(running, grace)
    try:
        while True:
            await trio.sleep(_REFRESH if show else _REPEAT)
            (show or write)(_measure(boss), max(0.0, deadline - trio.current_time()))
    finally:
        log.show("")


def show_on(log: LogHandler) -> Show:
    """Shows it on the last line of the terminal."""
    return lambda running, left: log.show(running.describe(left))


# -- between the processes of a supervisor and itself


def report_to_supervisor() -> Show:
    """Reports it to the supervisor. A supervisor that is gone, or does not read, delays nothing."""
    supervisor = socket.socket(fileno=os.dup(sys.stdin.fileno()))

    def send(running: Running, left: float) -> None:
        line = json.dumps([running.jobs, running.longest]) + "\n"
        try:
            supervisor.send(line.encode(), socket.MSG_DONTWAIT)
        except OSError:
            return

    return send


@attrs.define
class Reports:
    """The last report of each process of a supervisor."""

    _last: dict[int, Running] = attrs.field(factory=dict)

    async def read(self, pid: int, stream: trio.SocketStream) -> None:
        """Read the reports of a process until it ends."""
        buffer = b""
        try:
            async with stream:
                async for chunk in stream:
                    *lines, buffer = (buffer + chunk).split(b"\n")
                    for line in lines:
                        jobs, longest = json.loads(line)
                        self._last[pid] = Running(jobs, longest and tuple(longest))
        except trio.BrokenResourceError:
            return
        finally:
            self._last.pop(pid, None)

    async def show(self, log: LogHandler, stopping: trio.Event, grace: float) -> None:
        """From the begin of the stop on, keep a line about all processes on the terminal."""
        await stopping.wait()
        deadline = trio.current_time() + grace
        try:
            while True:
                await trio.sleep(_REFRESH)
                if self._last:
                    left = max(0.0, deadline - trio.current_time())
                    log.show(_total(self._last.values()).describe(left))
        finally:
            log.show("")
