"""Works ahead: while one chunk is with Spark, the next one is being fetched."""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Generic, TypeVar

__all__ = ["prefetch"]

T = TypeVar("T")


class _End(Generic[T]):
    """The last item of a producer: it is done, or has failed with an error."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def prefetch(make: Callable[[], Iterator[T]], depth: int = 1) -> Iterator[T]:
    """The items that ``make()`` gives, made in a thread that is up to ``depth`` items ahead.

    The thread ends when its last item was taken, when it fails, or when the consumer stops.
    """
    made: queue.Queue[T | _End[T]] = queue.Queue(depth)
    unwanted = threading.Event()

    def put(item: T | _End[T]) -> bool:
        while not unwanted.is_set():
            try:
                made.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def produce() -> None:
        error: BaseException | None = None
        try:
            with closing(make()) as items:  # type: ignore[type-var]
                for item in items:
                    if not put(item):
                        return
        except BaseException as problem:
            error = problem
        put(_End(error))

    thread = threading.Thread(target=produce, name="trioboss-ahead", daemon=True)
    thread.start()
    try:
        while not isinstance(item := made.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        unwanted.set()
        thread.join()
