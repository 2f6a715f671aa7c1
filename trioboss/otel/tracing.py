"""The spans of handlers, and the context that travels with a job."""

import re
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import attrs
from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags, Tracer

from trioboss.api.handlers import CallNext
from trioboss.api.running_job import RunningJob
from trioboss.events import Event, JobFailed, LeaseExtended
from trioboss.otel.metrics import Instruments, common_attributes

__all__ = ["Tracing"]

_TRACEPARENT = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_AUTO_CHILD = 60.0  # seconds that a job may have waited to be a child of its sender, with parent="auto"


@attrs.frozen
class Tracing:
    """Middleware and listeners of an instrumented boss."""

    _tracer: Tracer
    _instruments: Instruments
    _parent: str

    async def process(self, job: Any, call_next: CallNext) -> Any:
        """The middleware: runs a handler within its span."""
        jobs: Sequence[RunningJob[Any]] = job if isinstance(job, list) else [job]
        first = jobs[0]
        attributes = common_attributes("process", "process", first.queue)
        span = self._start(jobs, attributes)
        kind: str | None = None
        started = perf_counter()
        # The exception is recorded here, and not by use_span: a cancellation is no error of the handler.
        with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                return await call_next(job)
            except BaseException as error:
                kind = attributes["error.type"] = self._note_error(span, error)
                raise
            finally:
                self._instruments.process_duration.record(perf_counter() - started, attributes)
                self._instruments.consumed.add(len(jobs), first.queue, kind)

    def _start(self, jobs: Sequence[RunningJob[Any]], attributes: dict[str, Any]) -> Span:
        first = jobs[0]
        details = dict(attributes)
        if len(jobs) == 1:
            details["messaging.message.id"] = str(first.id)
            details["trioboss.attempt"] = first.attempt
            details["trioboss.wait"] = _waited(first)
        else:
            details["messaging.batch.message_count"] = len(jobs)
        parent = None
        if len(jobs) == 1 and first.job.trace and self._is_child(first):
            parent = propagate.extract(first.job.trace)
        links = [_link(each.job.trace, "send") for each in jobs if each.job.trace and parent is None]
        links += [_link(each.output, "attempt") for each in jobs if isinstance(each.output, dict)]
        return self._tracer.start_span(
            f"process {first.queue}",
            context=parent if parent is not None else Context(),
            kind=SpanKind.CONSUMER,
            attributes=details,
            links=[link for link in links if link is not None],
        )

    def _is_child(self, job: RunningJob[Any]) -> bool:
        if self._parent != "auto":
            return self._parent == "child"
        is_deferred = job.start_after > job.created_on
        return job.attempt == 1 and not is_deferred and _waited(job) <= _AUTO_CHILD

    def _note_error(self, span: Span, error: BaseException) -> str:
        kind = type(error).__qualname__
        span.set_attribute("error.type", kind)
        if isinstance(error, Exception):
            span.record_exception(error)
            span.set_status(Status(StatusCode.ERROR, f"{kind}: {error}"))
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
            if "traceparent" in carrier:
                _set_traceparent(error, carrier["traceparent"])
        return kind

    # -- what happens to a job besides

    def report_failed(self, event: Event) -> None:
        """A span for the retry or the dead letter that follows from a failure, below that of the attempt."""
        assert isinstance(event, JobFailed)
        name = "retry" if event.state == "retry" else "dead_letter" if event.dead_letter else "fail"
        context = _context_of(getattr(event.exception, "traceparent", None))
        attributes = common_attributes(name, "settle", event.queue)
        attributes |= {"messaging.message.id": str(event.id), "trioboss.attempt": event.attempt}
        if event.dead_letter is not None:
            attributes["trioboss.dead_letter"] = event.dead_letter
        self._tracer.start_span(
            f"{name} {event.queue}", context=context or Context(), kind=SpanKind.CLIENT, attributes=attributes
        ).end()

    def report_extended(self, event: Event) -> None:
        """A span for a lease extension. The handler's task reports it, so that its own span is the parent."""
        assert isinstance(event, LeaseExtended)
        attributes = common_attributes("extend", "settle", event.queue)
        attributes |= {"messaging.message.id": str(event.id), "trioboss.expire_in": event.expire_in}
        self._tracer.start_span(f"extend {event.queue}", kind=SpanKind.CLIENT, attributes=attributes).end()


def _waited(job: RunningJob[Any]) -> float:
    """Seconds from when the job could have started until its claim, by the clock of the database."""
    if job.started_on is None:
        return 0.0
    return max(0.0, (job.started_on - max(job.start_after, job.created_on)).total_seconds())


def _context_of(traceparent: object) -> Context | None:
    return propagate.extract({"traceparent": traceparent}) if isinstance(traceparent, str) else None


def _link(carrier: Mapping[str, Any], kind: str) -> Link | None:
    """A link to the span whose context was stored: by the sender, or with the error of the attempt before."""
    found = _parse(carrier.get("traceparent"))
    if found is None and kind == "send":  # of another propagator than that of the W3C
        found = trace.get_current_span(propagate.extract(carrier)).get_span_context()
    return Link(found, {"trioboss.link": kind}) if found is not None and found.is_valid else None


def _parse(traceparent: object) -> SpanContext | None:
    """The context in a header of version 00. A propagator takes five times as long: it also reads baggage."""
    match = _TRACEPARENT.fullmatch(traceparent) if isinstance(traceparent, str) else None
    if match is None:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in match.groups())
    return SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))


def _set_traceparent(error: Exception, traceparent: str) -> None:
    """Attach the context to the exception, which is stored with its attributes: the next attempt finds it there."""
    try:
        error.traceparent = traceparent  # type: ignore[attr-defined]
    except AttributeError:
        return  # an exception class with slots: the next attempt is not linked to this one
