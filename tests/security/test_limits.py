"""How large a payload, an output, an error, a key and a name may be: one limit each, told before any SQL."""

import pytest
import trio

import trioboss
from trioboss.events import JobFailed
from trioboss.model.payload import MAX_BYTES
from trioboss.testing import record


@pytest.fixture
async def small(dsn):
    """A boss that takes a thousand bytes."""
    async with trioboss.open_boss(dsn, migrate=False, max_payload=1000) as boss:
        await boss.create_queue("q", retry_limit=0)
        yield boss


async def test_a_payload_that_is_too_large_is_refused_with_its_size(small):
    await small.send("q", "x" * 998)
    for call in (
        lambda: small.send("q", "x" * 999),
        lambda: small.insert("q", [{"data": "x" * 999}]),
        lambda: small.schedule("q", "* * * * *", "x" * 999),
        lambda: small.publish("event", "x" * 999),
    ):
        with pytest.raises(trioboss.PayloadError, match="1001 bytes of JSON, 1000 are allowed"):
            await call()


async def test_the_limit_counts_what_is_sent_not_what_it_looks_like(small):
    with pytest.raises(trioboss.PayloadError, match="1000 are allowed"):
        await small.send("q", "\U0001f600" * 100)  # twelve characters each, as JSON


def test_ten_megabytes_are_enough_for_everybody(quarry):
    with pytest.raises(trioboss.PayloadError, match=f"{MAX_BYTES} are allowed"):
        quarry.send("q", "x" * MAX_BYTES, singleton_key="k")


@pytest.mark.parametrize("how", ["returned", "manually", "progress"])
async def test_an_output_that_is_too_large_fails_the_job_once_and_says_so(small, how):
    async def handler(job):
        if how == "manually":
            await job.complete("x" * 1000)
        elif how == "progress":
            await job.progress("x" * 1000)
        return "x" * 1000

    with trio.fail_after(60):
        async with record(small.events()) as recorder:
            await small.work("q", handler)
            job = await small.wait_for("q", await small.send("q"))
            (failed,) = await recorder.wait_for(JobFailed)

    assert job.state == "failed"
    assert "1002 bytes of JSON, 1000 are allowed" in job.output["message"]
    assert failed.attempt == 1


async def test_an_endless_error_is_stored_by_its_beginning_and_end(small):
    async def handler(job):
        raise ValueError("a" * 5_000_000 + "\0\udc80")

    with trio.fail_after(60):
        async with record(small.events()) as recorder:
            await small.work("q", handler)
            job = await small.wait_for("q", await small.send("q"))
            (failed,) = await recorder.wait_for(JobFailed)

    assert len(str(job.output)) < 20_000
    assert job.output["message"].endswith("\\0?")
    assert len(failed.error) < 1000


def test_an_error_by_hand_has_the_same_limit(sync_boss):
    sync_boss.create_queue("q", retry_limit=0)
    sync_boss.send("q")
    (job,) = sync_boss.fetch("q")
    sync_boss.fail("q", job, "x" * 5_000_000)

    assert len(sync_boss.get_job_by_id("q", job.id).output["message"]) < 10_000


@pytest.mark.parametrize("key", ["x" * 1001, "é" * 501, "\0", "\udc80", ""])
def test_a_key_that_no_index_could_hold_is_refused(quarry, key):
    with pytest.raises(trioboss.UsageError, match="singleton_key"):
        quarry.send("q", singleton_key=key)
