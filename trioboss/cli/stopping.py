"""What a stopping worker waits for: told at once, and kept up to date on a terminal."""

import logging

import trio

from trioboss.api.boss import Boss
from trioboss.cli.logs import LogHandler
from trioboss.model.texts import show_seconds

__all__ = ["show_stopping"]

_logger = logging.getLogger("trioboss.worker")

_REFRESH = 0.25  # seconds between two updates on a terminal
_REPEAT = 10.0  # seconds between two lines elsewhere


async def show_stopping(boss: Boss, log: LogHandler, grace: float, *, live: bool) -> None:
    """Tell what the worker waits for, until cancelled. ``live``: keep a line on the terminal up to date."""
    deadline = trio.current_time() + grace
    try:
        _logger.info("%s", _describe(boss, deadline))
        while True:
            await trio.sleep(_REFRESH if live else _REPEAT)
            if live:
                log.show(_describe(boss, deadline))
            else:
                _logger.info("%s", _describe(boss, deadline))
    finally:
        if live:
            log.show("")


def _describe(boss: Boss, deadline: float) -> str:
    workers = boss.statistics().workers
    running = sum(worker.running for worker in workers)
    if not running:
        return "stopping: no job is running"
    left = max(0.0, deadline - trio.current_time())
    text = f"stopping: waiting for {running} job{'' if running == 1 else 's'}"
    longest = max(
        filter(None, (worker.longest for worker in workers)), key=lambda each: each[2], default=None
    )
    if longest is not None:
        queue, id, seconds = longest
        text += f", the longest ({queue} {id}) has run for {show_seconds(seconds)}"
    return f"{text}; {show_seconds(float(round(left)))} left; Ctrl-C again to stop now"
