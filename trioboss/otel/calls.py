"""Spans of the methods of a boss. Each is wrapped where the boss is instrumented, and nowhere else."""

import functools
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import attrs
from opentelemetry import propagate
from opentelemetry.trace import Span, SpanKind, Tracer

from trioboss.api.boss import Boss
from trioboss.api.sync import SyncBoss
from trioboss.model.answers import Redriven
from trioboss.model.job import NewJob
from trioboss.otel.metrics import Instruments, common_attributes

__all__ = ["is_wrapped", "wrap_calls"]

_SENDS = ("send", "send_after", "send_throttled", "send_debounced", "send_once", "send_singleton", "publish")
# The name in the conventions, and its type, for the other methods.
_OPERATIONS = {
    "fetch": ("receive", "receive"),
    **{name: (name, "settle") for name in ("complete", "fail", "cancel", "touch")},
    **{name: (name, "settle") for name in ("resume", "retry", "delete_job", "update_job", "redrive")},
}
_FIRST_PARAMETERS = {"publish": "event", "redrive": "dead_letter_queue"}  # all others have `queue`


def wrap_calls(boss: Boss | SyncBoss, tracer: Tracer, instruments: Instruments) -> None:
    """Wrap the methods of one boss; its class stays as it is."""
    for name in _SENDS:
        _replace(boss, name, _SendCall(tracer, instruments, name))
    _replace(boss, "insert", _InsertCall(tracer, instruments, "insert"))
    for name in _OPERATIONS:
        _replace(boss, name, _Call(tracer, instruments, name))


def is_wrapped(boss: Boss | SyncBoss) -> bool:
    """Whether the methods of this boss are wrapped already."""
    return "send" in vars(boss)


def _replace(boss: Boss | SyncBoss, name: str, call: "_Call") -> None:
    method = getattr(boss, name)
    run = call.run if isinstance(boss, Boss) else call.run_blocking
    setattr(boss, name, functools.wraps(method)(functools.partial(run, method)))


@attrs.define
class _Observed:
    """One call: the arguments with which the method is called, and then its answer."""

    arguments: tuple[Any, ...]
    answer: Any = None


@attrs.frozen
class _Call:
    """One wrapped method."""

    _tracer: Tracer
    _instruments: Instruments
    _name: str

    async def run(self, method: Callable[..., Awaitable[Any]], /, *args: Any, **kwargs: Any) -> Any:
        """Call a method of a Boss."""
        with self._observe(args, kwargs) as call:
            call.answer = await method(*call.arguments, **kwargs)
        return call.answer

    def run_blocking(self, method: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a method of a SyncBoss."""
        with self._observe(args, kwargs) as call:
            call.answer = method(*call.arguments, **kwargs)
        return call.answer

    @contextmanager
    def _observe(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[_Observed]:
        """The span of a call, and its time. Keyword arguments are changed in place."""
        if not args:  # the first parameter, the queue or the event, was given by its name
            args = (kwargs.pop(_FIRST_PARAMETERS.get(self._name, "queue")),)
        queue, *rest = args
        operation, kind = _OPERATIONS.get(self._name, ("send", "send"))
        name = _name_of(queue)
        attributes = common_attributes(operation, kind, name)
        span_kind = SpanKind.PRODUCER if kind == "send" else SpanKind.CLIENT
        started = perf_counter()
        error: str | None = None
        with self._tracer.start_as_current_span(
            f"{operation} {name}", kind=span_kind, attributes=attributes
        ) as span:
            try:
                call = _Observed(self._prepare(queue, rest, kwargs))
                yield call
                self._describe(span, name, call.answer)
            except BaseException as problem:
                error = type(problem).__qualname__
                span.set_attribute("error.type", error)
                raise
            finally:
                if error is not None:
                    attributes = {**attributes, "error.type": error}
                self._instruments.operation_duration.record(perf_counter() - started, attributes)

    def _prepare(self, queue: Any, rest: list[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments with which the method is called, in its span; keyword arguments are changed in place."""
        return (queue, *rest)

    def _describe(self, span: Span, queue: str, answer: Any) -> None:
        """Add to the span, and count, what the method has done."""
        if isinstance(answer, list) and self._name == "fetch":
            span.set_attribute("messaging.batch.message_count", len(answer))
        elif isinstance(answer, Redriven):
            span.set_attribute("messaging.batch.message_count", answer.moved)


class _SendCall(_Call):
    """A method that sends one job, with the context of its span."""

    def _prepare(self, queue: Any, rest: list[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        request = queue if isinstance(queue, Mapping) else {"data": rest[0] if rest else kwargs.get("data")}
        places = (kwargs, request, request.get("options") or {})
        data = request.get("data")
        is_given = any(place.get("trace") for place in places) or (isinstance(data, NewJob) and data.trace)
        if not is_given and (carrier := _inject()):
            kwargs["trace"] = carrier
        return (queue, *rest)

    def _describe(self, span: Span, queue: str, answer: Any) -> None:
        if isinstance(answer, list):  # publish: to any number of queues
            span.set_attribute("messaging.batch.message_count", len(answer))
            self._instruments.sent.add(len(answer), queue)
        elif answer is not None:
            span.set_attribute("messaging.message.id", str(answer))
            self._instruments.sent.add(1, queue)


class _InsertCall(_Call):
    """`insert`: all jobs have the context of one span."""

    def _prepare(self, queue: Any, rest: list[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        jobs, *rest = rest or (kwargs.pop("jobs"),)
        carrier = _inject()
        return (queue, _with_trace(jobs, carrier) if carrier else jobs, *rest)

    def _describe(self, span: Span, queue: str, answer: Any) -> None:
        count = answer if isinstance(answer, int) else len(answer)
        span.set_attribute("messaging.batch.message_count", count)
        self._instruments.sent.add(count, queue)


def _name_of(queue: object) -> str:
    """The name of the queue; of a request, which is a mapping, the one in it."""
    return str(queue.get("queue", queue.get("name"))) if isinstance(queue, Mapping) else str(queue)


def _inject() -> dict[str, str]:
    """The context of the current span, as headers; empty if it is not recorded anywhere."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier


def _with_trace(
    jobs: Iterable[NewJob | Mapping[str, Any]], carrier: dict[str, str]
) -> Iterator[NewJob | Mapping[str, Any]]:
    for job in jobs:
        if isinstance(job, NewJob):
            yield job if job.trace is not None else attrs.evolve(job, trace=carrier)
        else:
            yield {"trace": carrier, **job}
