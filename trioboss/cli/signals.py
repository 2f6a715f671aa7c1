"""The signals that stop a command which serves until then."""

import signal
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager

import trio

__all__ = ["STOP_SIGNALS", "is_stopped_within", "receive_stop_signals"]

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def receive_stop_signals() -> AbstractContextManager[AsyncIterator[int]]:
    """A block that receives these signals. A signal that is ignored, as `nohup` makes it, stays ignored."""
    return trio.open_signal_receiver(
        *(each for each in STOP_SIGNALS if signal.getsignal(each) is not signal.SIG_IGN)
    )


async def is_stopped_within(seconds: float, signals: AsyncIterator[int]) -> bool:
    """Wait for a signal for some time; whether it came."""
    with trio.move_on_after(seconds):
        async for _ in signals:
            return True
    return False
