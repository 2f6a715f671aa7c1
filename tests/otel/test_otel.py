"""The spans of handlers: their shape, and how they are connected."""

import pytest
import trio

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.trace import SpanKind, StatusCode
from otel_helpers import TIMEOUT, linked, nothing

from trioboss.events import JobFailed
from trioboss.otel import instrument
from trioboss.testing import record


async def test_a_send_and_its_handler_are_two_traces_with_a_link(run, spans):
    job = await run(nothing)

    send, process = spans.one("send email"), spans.one("process email")
    assert (send.kind, process.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert process.parent is None
    assert process.context.trace_id != send.context.trace_id
    assert linked(process) == [(send.context.span_id, "send")]
    for span, operation in ((send, "send"), (process, "process")):
        assert span.attributes["messaging.system"] == "trioboss"
        assert span.attributes["messaging.operation.name"] == operation
        assert span.attributes["messaging.operation.type"] == operation
        assert span.attributes["messaging.destination.name"] == "email"
        assert span.attributes["messaging.message.id"] == str(job.id)
    assert process.attributes["trioboss.attempt"] == 1
    assert process.attributes["trioboss.wait"] >= 0
    assert process.status.status_code is StatusCode.UNSET


async def test_no_span_contains_a_payload_or_a_key(run, spans):
    await run(nothing, {"secret": "4242"}, send={"singleton_key": "4242"})

    assert all("4242" not in span.to_json() for span in spans.get_finished_spans())


async def test_as_a_child_the_handler_is_in_the_trace_of_the_send(run, spans):
    await run(nothing, parent="child")

    send, process = spans.one("send email"), spans.one("process email")
    assert process.parent.span_id == send.context.span_id
    assert process.context.trace_id == send.context.trace_id
    assert not process.links


async def test_by_itself_only_a_prompt_first_attempt_is_a_child(run, spans, boss):
    async def handle(job):
        if job.attempt == 1:
            raise ValueError("once more")

    await run(handle, parent="auto", retry_limit=1)
    with trio.fail_after(TIMEOUT):
        await boss.wait_for("email", await boss.send("email", start_after=0.2))

    first, retry, deferred, deferred_retry = spans.named("process email")
    assert first.parent is not None
    assert [span.parent for span in (retry, deferred, deferred_retry)] == [None] * 3


async def test_a_retry_is_linked_to_the_attempt_before(run, spans):
    async def handle(job):
        if job.attempt == 1:
            raise ValueError("once more")
        if job.attempt == 2:
            raise job.retry(delay=0, reason="asked for")

    job = await run(handle, retry_limit=2)

    assert job.state == "completed"
    send = spans.one("send email").context.span_id
    first, second, third = spans.named("process email")
    assert linked(first) == [(send, "send")]
    assert linked(second) == [(send, "send"), (first.context.span_id, "attempt")]
    assert linked(third) == [(send, "send"), (second.context.span_id, "attempt")]


async def test_a_failure_has_its_class_and_what_followed_from_it(run, spans, boss):
    async def handle(job):
        raise KeyError("x")

    await boss.create_queue("graves")
    await boss.create_queue("email", retry_limit=1, dead_letter="graves")
    instrument(boss, tracer_provider=spans.provider)
    async with record(boss.events(JobFailed)) as recorder:
        await boss.work("email", handle)
        await boss.send("email")
        with trio.fail_after(TIMEOUT):
            await recorder.wait_for(JobFailed, count=2)

    first, second = spans.named("process email")
    assert first.attributes["error.type"] == "KeyError"
    assert first.status.status_code is StatusCode.ERROR
    assert [event.name for event in first.events] == ["exception"]
    retry, dead = spans.one("retry email"), spans.one("dead_letter email")
    assert retry.parent.span_id == first.context.span_id
    assert dead.parent.span_id == second.context.span_id
    assert dead.attributes["trioboss.dead_letter"] == "graves"
    assert (retry.kind, retry.attributes["messaging.operation.type"]) == (SpanKind.CLIENT, "settle")


async def test_a_cancelled_handler_is_no_error(run, spans, boss):
    started = trio.Event()

    async def handle(job):
        started.set()
        await trio.sleep_forever()

    instrument(boss, tracer_provider=spans.provider)
    await boss.create_queue("email")
    worker = await boss.work("email", handle)
    id = await boss.send("email")
    with trio.fail_after(TIMEOUT):
        await started.wait()
        await boss.cancel("email", id)
        await boss.off_work(worker)

    process = spans.one("process email")
    assert (process.status.status_code, process.events) == (StatusCode.UNSET, ())
    assert process.attributes["error.type"] == "Cancelled"
    assert spans.one("cancel email").kind is SpanKind.CLIENT


async def test_sends_and_extensions_of_a_handler_are_below_its_span(run, spans, boss):
    async def handle(job):
        await job.extend(60)
        await job.boss.send("other", trace=None)

    await boss.create_queue("other")
    await run(handle)

    process = spans.one("process email")
    assert spans.one("extend email").parent.span_id == process.context.span_id
    assert spans.one("send other").parent.span_id == process.context.span_id


async def test_a_handler_in_a_thread_runs_within_its_span(run, spans):
    from opentelemetry import trace

    def handle(job):
        return format(trace.get_current_span().get_span_context().span_id, "016x")

    job = await run(handle, thread=True)

    assert job.output == format(spans.one("process email").context.span_id, "016x")


async def test_a_batch_has_one_span_with_a_link_for_each_job(spans, boss):
    async def handle(jobs):
        pass

    instrument(boss, parent="child", tracer_provider=spans.provider)
    await boss.create_queue("email")
    ids = [await boss.send("email", n) for n in range(3)]
    await boss.work("email", handle, batch_size=3)
    with trio.fail_after(TIMEOUT):
        for id in ids:
            await boss.wait_for("email", id)

    batches = spans.named("process email")
    assert sum(len(span.links) for span in batches) == 3
    assert all(span.parent is None for span in batches if len(span.links) > 1)
