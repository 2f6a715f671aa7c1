"""Spans and metrics: their shape, and how they are connected."""

import psycopg
import pytest
import trio

import trioboss

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from trioboss.events import JobFailed
from trioboss.otel import instrument
from trioboss.testing import record

TIMEOUT = 60  # seconds after which a test has failed
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Spans(InMemorySpanExporter):
    """The spans that have ended, by their names."""

    def __init__(self):
        super().__init__()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self))

    def named(self, name):
        return [span for span in self.get_finished_spans() if span.name == name]

    def one(self, name):
        (span,) = self.named(name)
        return span


@pytest.fixture
def spans():
    return Spans()


@pytest.fixture
def run(boss, spans):
    """Run a handler on one job of an instrumented boss; return the ended job."""

    async def run(handler, data=None, *, parent="link", retry_limit=0, send=None, **options):
        instrument(boss, parent=parent, tracer_provider=spans.provider)
        await boss.create_queue("email", retry_limit=retry_limit)
        await boss.work("email", handler, **options)
        id = await boss.send("email", data, **(send or {}))
        with trio.fail_after(TIMEOUT):
            return await boss.wait_for("email", id)

    return run


async def nothing(job):
    pass


def linked(span):
    return [(link.context.span_id, link.attributes["trioboss.link"]) for link in span.links]


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


async def test_what_a_handler_sends_and_extends_is_below_its_span(run, spans, boss):
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


async def test_the_context_is_carried_by_insert_publish_and_plain_sql(run, spans, boss, dsn):
    await run(nothing)
    await boss.subscribe("event", "email")
    ids = await boss.insert("email", [{"data": 1}, trioboss.NewJob(2)], return_ids=True)
    ids += await boss.insert("email", [{"data": 1, "trace": {"traceparent": TRACEPARENT}}], return_ids=True)
    ids += await boss.publish("event")
    with psycopg.connect(dsn) as conn:
        insert = "INSERT INTO trioboss.job (name, trace) VALUES ('email', %s) RETURNING id"
        ids.append(conn.execute(insert, [f'{{"traceparent": "{TRACEPARENT}"}}']).fetchone()[0])
    with trio.fail_after(TIMEOUT):
        jobs = {id: await boss.wait_for("email", id) for id in ids}

    processed = {span.attributes["messaging.message.id"]: span for span in spans.named("process email")}
    links = [format(processed[str(id)].links[0].context.span_id, "016x") for id in ids]
    senders = [format(span.context.span_id, "016x") for span in spans.named("send email")]
    given = TRACEPARENT.split("-")[2]
    inserts = [
        span for span in spans.named("send email") if "messaging.batch.message_count" in span.attributes
    ]
    assert [span.attributes["messaging.batch.message_count"] for span in inserts] == [2, 1]
    assert links[0] == links[1] in senders
    assert links[2] == links[4] == given
    assert links[3] == format(spans.one("send event").context.span_id, "016x")
    assert jobs[ids[4]].trace == {"traceparent": TRACEPARENT}


@pytest.mark.parametrize("way", ["request", "options of a request", "job", "job by name", "option"])
async def test_a_context_that_is_given_is_kept(boss, spans, way):
    instrument(boss, tracer_provider=spans.provider)
    await boss.create_queue("q")
    given = {"traceparent": TRACEPARENT}
    send = {
        "request": lambda: boss.send({"queue": "q", "trace": given}),
        "options of a request": lambda: boss.send({"name": "q", "options": {"trace": given}}),
        "job": lambda: boss.send("q", trioboss.NewJob(trace=given)),
        "job by name": lambda: boss.send("q", data=trioboss.NewJob(trace=given)),
        "option": lambda: boss.send(queue="q", trace=given),
    }
    await send[way]()

    (job,) = await boss.fetch("q")
    assert job.trace == given


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


async def test_a_boss_that_is_not_instrumented_stores_no_context(boss, spans, dsn):
    await boss.create_queue("email")
    id = await boss.send("email")

    assert (await boss.get_job_by_id("email", id)).trace is None
    assert not spans.get_finished_spans()
    assert "send" not in vars(boss)


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
async def test_what_cannot_be_instrumented_is_named(boss, wrong):
    with pytest.raises(trioboss.UsageError, match=next(iter(wrong))):
        instrument(**{"boss_or_app": boss, **wrong})


@pytest.mark.parametrize(
    "trace", [{"traceparent": 5}, {"a": "x" * 3000}, {"a": "line\nbreak"}, "00-…", {"a": "\u00e4"}]
)
async def test_a_trace_context_of_another_kind_is_refused(boss, trace):
    await boss.create_queue("email")
    with pytest.raises(trioboss.UsageError, match=r"^trace: "):
        await boss.send("email", trace=trace)
