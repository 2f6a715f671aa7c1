"""Lets SIGTERM and SIGINT end a job between two of its steps."""

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

__all__ = ["Stop", "stop_on_signals"]

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stop(Protocol):
    """Tells a job to stop; a threading.Event is one."""

    def is_set(self) -> bool:
        """Whether the job is to stop."""

    def wait(self, timeout: float) -> bool:
        """Wait until the job is to stop, at most so many seconds; return whether it is."""


class _SignalStop:
    """A stop that signals set.

    A pipe instead of a threading.Event: the handler runs in the thread that waits, and an Event's lock, which that
    thread may hold at that moment, would never be released.
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float) -> bool:
        return bool(select.select([self._reader], [], [], timeout)[0])

    def receive(self, number: int, frame: FrameType | None) -> None:
        if self._is_set:
            raise KeyboardInterrupt  # the second signal does not wait for the step to end
        self._is_set = True
        os.write(self._writer, b"s")

    def close(self) -> None:
        os.close(self._reader)
        os.close(self._writer)


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """A stop that SIGTERM or SIGINT sets, for the length of a block. A second signal raises KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield threading.Event()  # only the main thread can handle signals
        return
    stop = _SignalStop()
    before = {number: signal.signal(number, stop.receive) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        stop.close()
