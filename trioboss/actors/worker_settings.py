"""The arguments of `work`, as the worker has them."""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import attrs

from trioboss.actors.handlers import JobClasses
from trioboss.actors.middleware import AnyMiddleware
from trioboss.actors.slots import SlotSettings
from trioboss.model.described_error import Redact
from trioboss.model.job import Job
from trioboss.model.settle_and_claim import ClaimRequest

__all__ = ["WorkerSettings"]


@attrs.frozen(kw_only=True)
class WorkerSettings:
    """The arguments of `work`."""

    queue: str
    """A name, or a pattern with *."""
    handler: Callable[[Any], Any]
    slots: SlotSettings
    request: ClaimRequest
    thread: bool = False
    asyncio: bool = False
    name: str
    middleware: Sequence[AnyMiddleware] = ()
    """Functions around every call of the handler, the first one outermost."""
    lifespan: Callable[[], AbstractAsyncContextManager[object]] = nullcontext
    """A block that is entered before the first job, and left after the last one."""
    decode: Callable[[Job], Any] | None = None
    """The type of the jobs' data."""
    redact: Redact | None = None
    job_classes: JobClasses = attrs.field(factory=JobClasses)
    surroundings: object = None
    """The values that the job classes of the API need."""

    @property
    def options(self) -> dict[str, object]:
        """The options of `work`, as readers of events see them."""
        slots, request = self.slots, self.request
        return {
            "concurrency": slots.concurrency,
            "batch_size": slots.batch_size,
            "prefetch": slots.prefetch,
            "priority": request.by_priority,
            "min_priority": request.min_priority,
            "max_priority": request.max_priority,
            "thread": self.thread,
            "asyncio": self.asyncio,
        }

    @property
    def is_pattern(self) -> bool:
        """Whether it is for all queues that match, including later ones."""
        return "*" in self.queue

    def matches(self, queue: str) -> bool:
        """Whether jobs of this queue are for this worker. Queues of completions have to be named as such."""
        if not self.is_pattern:
            return queue == self.queue
        if queue.startswith("__") and not self.queue.startswith("__"):
            return False
        pattern = ".*".join(map(re.escape, self.queue.split("*")))
        return re.fullmatch(pattern, queue) is not None
