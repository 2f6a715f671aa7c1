"""The spans of calls on a boss, the metrics, and what can be instrumented."""

import pytest
import trio

import trioboss

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.trace import SpanKind
from otel_helpers import TIMEOUT, linked

from trioboss.otel import instrument


async def test_the_first_argument_of_every_call_may_be_given_by_its_name(boss, spans):
    instrument(boss, tracer_provider=spans.provider)
    await boss.create_queue("q")
    await boss.subscribe("e", "q")
    await boss.publish(event="e")
    await boss.insert(queue="q", jobs=[{"data": 1}])

    assert len(await boss.fetch(queue="q", batch_size=9)) == 2
    assert spans.one("send e")


async def test_a_boss_is_instrumented_once(boss, spans):
    instrument(boss, tracer_provider=spans.provider)

    with pytest.raises(trioboss.UsageError, match="instrumented already"):
        instrument(boss, tracer_provider=spans.provider)


async def test_every_call_on_jobs_has_a_span_and_its_error(spans, boss):
    instrument(boss, tracer_provider=spans.provider)
    await boss.create_queue("email")
    await boss.send("email")
    (job,) = await boss.fetch("email")
    await boss.touch("email", job)
    await boss.complete("email", job)
    with pytest.raises(trioboss.LeaseLost):
        await boss.fail("email", job)

    receive = spans.one("receive email")
    assert (receive.kind, receive.attributes["messaging.batch.message_count"]) == (SpanKind.CLIENT, 1)
    assert [
        spans.one(f"{name} email").attributes.get("error.type") for name in ("touch", "complete", "fail")
    ] == [
        None,
        None,
        "LeaseLost",
    ]


async def test_queued_jobs_that_are_changed_or_sent_back_have_a_span(spans, boss):
    instrument(boss, tracer_provider=spans.provider)
    await boss.create_queue("dead")
    await boss.create_queue("email", dead_letter="dead", retry_limit=0)
    id = await boss.send("email")
    await boss.update_job("email", id, priority=5)
    await boss.fail("email", await boss.fetch("email"))
    await boss.redrive(dead_letter_queue="dead")

    assert spans.one("update_job email").kind == SpanKind.CLIENT
    assert spans.one("redrive dead").attributes["messaging.batch.message_count"] == 1


async def test_a_blocking_boss_has_the_spans_of_its_calls_and_its_jobs_their_context(run, spans, dsn):
    reader = InMemoryMetricReader()
    with trioboss.SyncBoss(dsn, migrate=False) as blocking:
        instrument(blocking, tracer_provider=spans.provider, meter_provider=MeterProvider([reader]))
        with pytest.raises(trioboss.UsageError, match="instrumented already"):
            instrument(blocking)
        blocking.create_queue("web")
        id = blocking.send("web", {"a": 1})
        blocking.insert("web", [{"data": 2}, trioboss.NewJob(3)])
        jobs = blocking.fetch(queue="web", batch_size=9)
        blocking.complete("web", jobs)
        with pytest.raises(trioboss.LeaseLost):
            blocking.fail("web", jobs[0])

    sent, inserted = spans.named("send web")
    assert (sent.kind, sent.attributes["messaging.message.id"]) == (SpanKind.PRODUCER, str(id))
    assert inserted.attributes["messaging.batch.message_count"] == 2
    traces = [int(job.trace["traceparent"].split("-")[1], 16) for job in jobs]
    assert traces == [sent.context.trace_id, inserted.context.trace_id, inserted.context.trace_id]
    assert spans.one("receive web").attributes["messaging.batch.message_count"] == 3
    assert spans.one("fail web").attributes["error.type"] == "LeaseLost"
    (resource,) = reader.get_metrics_data().resource_metrics
    metrics = {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}
    assert [point.value for point in metrics["messaging.client.sent.messages"].data.data_points] == [3]


async def test_an_app_is_instrumented_on_every_boss_it_is_started_on(spans, dsn):
    app = trioboss.App()

    @app.worker("email")
    async def handle(job):
        pass

    instrument(app, tracer_provider=spans.provider)
    async with trioboss.open_boss(dsn, migrate=False, app=app) as boss:
        id = await handle.send(None)
        with trio.fail_after(TIMEOUT):
            await boss.wait_for("email", id)

    assert linked(spans.one("process email")) == [(spans.one("send email").context.span_id, "send")]


async def test_metrics_follow_the_conventions(boss):
    reader = InMemoryMetricReader()

    async def handle(job):
        if job.data == "bad":
            raise ValueError

    instrument(boss, meter_provider=MeterProvider([reader]))
    await boss.create_queue("email", retry_limit=0)
    await boss.work("email", handle)
    with trio.fail_after(TIMEOUT):
        for data in ("good", "bad"):
            await boss.wait_for("email", await boss.send("email", data))

    (resource,) = reader.get_metrics_data().resource_metrics
    points = {
        metric.name: list(metric.data.data_points)
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert [point.value for point in points["messaging.client.sent.messages"]] == [2]
    consumed = {p.attributes.get("error.type"): p.value for p in points["messaging.client.consumed.messages"]}
    assert consumed == {None: 1, "ValueError": 1}
    assert sum(point.count for point in points["messaging.process.duration"]) == 2
    assert {
        p.attributes["messaging.operation.name"] for p in points["messaging.client.operation.duration"]
    } == {"send"}
    assert all("messaging.message.id" not in point.attributes for each in points.values() for point in each)


@pytest.mark.parametrize("wrong", [{"parent": "sibling"}, {"boss_or_app": 5}])
async def test_an_object_that_cannot_be_instrumented_is_named(boss, wrong):
    with pytest.raises(trioboss.UsageError, match=next(iter(wrong))):
        instrument(**{"boss_or_app": boss, **wrong})
