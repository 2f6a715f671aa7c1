"""The trace context of a job: how it is given, carried and kept."""

import psycopg
import pytest
import trio

import trioboss

pytest.importorskip("opentelemetry.sdk")

from otel_helpers import TIMEOUT, TRACEPARENT, nothing

from trioboss.otel import instrument


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


async def test_a_boss_that_is_not_instrumented_stores_no_context(boss, spans, dsn):
    await boss.create_queue("email")
    id = await boss.send("email")

    assert (await boss.get_job_by_id("email", id)).trace is None
    assert not spans.get_finished_spans()
    assert "send" not in vars(boss)


@pytest.mark.parametrize(
    "trace", [{"traceparent": 5}, {"a": "x" * 3000}, {"a": "line\nbreak"}, "00-…", {"a": "\u00e4"}]
)
async def test_a_trace_context_of_another_kind_is_refused(boss, trace):
    await boss.create_queue("email")
    with pytest.raises(trioboss.UsageError, match=r"^trace: "):
        await boss.send("email", trace=trace)
