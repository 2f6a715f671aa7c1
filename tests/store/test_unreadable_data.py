"""Data that plain SQL wrote and Python cannot read: it fails its own job, and no other."""

import pytest
import trio
from store_helpers import take_all

from trioboss.model.payload import Unreadable

UNREADABLE = ["('1' || repeat('0', 5000))::jsonb", "(repeat('[', 3000) || repeat(']', 3000))::jsonb"]


@pytest.fixture(params=UNREADABLE, ids=["long number", "deep list"])
async def unreadable(request, boss, database):
    """The id of a job between two others whose data Python cannot read."""
    await boss.create_queue("q")
    await boss.send("q", "first")
    ((id,),) = database.execute(
        f"insert into trioboss.job (name, data) values ('q', {request.param}) returning id"
    ).fetchall()
    await boss.send("q", "last")
    return id


@pytest.mark.parametrize("batch_size", [None, 3])
async def test_a_worker_fails_an_unreadable_job_and_runs_the_others(boss, unreadable, batch_size):
    seen = []

    async def handler(jobs):
        seen.extend(job.data for job in (jobs if batch_size else [jobs]))
        if "last" in seen:
            through.set()

    through = trio.Event()
    await boss.work("q", handler, batch_size=batch_size)
    with trio.fail_after(30):
        failed = await boss.wait_for("q", unreadable)
        await through.wait()
    assert seen == ["first", "last"]
    assert failed.state == "failed"
    assert failed.output["name"] == "PayloadError"


async def test_an_unreadable_job_can_be_found(boss, unreadable):
    jobs = await boss.find_jobs("q")
    assert [jobs[0].data, type(jobs[1].data), jobs[2].data] == ["first", Unreadable, "last"]
    assert (await boss.get_job_by_id("q", unreadable)).id == unreadable


async def test_a_fetch_fails_an_unreadable_job_and_returns_the_others(boss, unreadable):
    assert await take_all(boss, "q") == ["first", "last"]
    job = await boss.get_job_by_id("q", unreadable)
    assert (job.state, job.output["name"]) == ("failed", "PayloadError")
