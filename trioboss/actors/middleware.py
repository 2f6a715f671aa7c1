"""Middleware: functions around every call of a handler.

Tracing (trioboss/otel) is one. The job in log records is not: `current_jobs` in model/job_context.py has the reason.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import trio

from trioboss.actors.runner import Call

__all__ = ["AnyMiddleware", "wrap_handler"]

AnyMiddleware: TypeAlias = Callable[[Any, Call], Awaitable[Any]]
"""``async def middleware(job, call_next)``; the API has the type with the job's class."""


def wrap_handler(handler: Call, middleware: Sequence[AnyMiddleware]) -> Call:
    """The handler with middleware around it, the first one outermost. Done once for each worker."""
    for each in reversed(middleware):
        handler = _wrap(handler, each)
    return handler


def _wrap(inner: Call, middleware: AnyMiddleware) -> Call:
    async def call(job: Any) -> Any:
        has_completed = False

        async def call_next(job: Any) -> Any:
            nonlocal has_completed
            has_completed = False
            value = await inner(job)
            has_completed = True
            return value

        value = await middleware(job, call_next)
        if not has_completed:
            # The handler was cancelled, or never called, and the middleware returned nevertheless. If the job was
            # cancelled, this raises the cancellation again, whether it had arrived in the handler or in the middleware:
            # a job must not count as completed because of a middleware that catches every exception. If a scope of the
            # middleware itself was cancelled, such as its timeout, this raises nothing.
            await trio.lowlevel.checkpoint_if_cancelled()
        return value

    return call
