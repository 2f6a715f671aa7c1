"""Progress, which is best effort, and following a job."""

from collections import defaultdict

import pytest
import trio
from worker_helpers import TIMEOUT

import trioboss
from trioboss.events import ErrorEvent
from trioboss.testing import record


@pytest.fixture
async def other(dsn):
    """Another boss on the same database, in the place of another process."""
    async with trioboss.open_boss(dsn, migrate=False, supervise=False, schedule=False) as other:
        yield other


async def test_every_state_and_progress_of_a_job_can_be_followed_from_elsewhere(boss, other):
    seen = defaultdict(trio.Event)
    updates = []

    async def handle(job):
        for part in range(3):
            await job.progress({"part": part})
            if job.attempt == 1:
                await seen[part].wait()
        if job.attempt == 1:
            raise ValueError("once more")
        return "done"

    await boss.create_queue("q", retry_limit=1)
    id = await boss.send("q")
    with trio.fail_after(TIMEOUT):
        async with other.follow("q", id) as following:
            async for update in following:
                updates.append((update.state, update.attempt, update.progress))
                if update.state == "created":
                    await boss.work("q", handle)
                if update.progress is not None:
                    seen[update.progress["part"]].set()

    first = [
        ("created", 0, None),
        ("active", 1, {"part": 0}),
        ("active", 1, {"part": 1}),
        ("active", 1, {"part": 2}),
    ]
    assert [update for update in updates if update != ("active", 1, None)][:4] == first
    assert updates[-1][:2] == ("completed", 2)
    assert (update.output, update.id, update.queue) == ("done", id, "q")


async def test_a_claim_is_followed_although_it_notifies_nobody(boss, other):
    hold = trio.Event()

    async def handle(job):
        await hold.wait()

    await boss.create_queue("q")
    id = await boss.send("q")
    with trio.fail_after(TIMEOUT / 5):  # the safety poll comes after 20 s
        async with other.follow("q", id) as following:
            states = [(await anext(following)).state]
            await boss.work("q", handle)
            states.append((await anext(following)).state)
            hold.set()
            states += [update.state async for update in following]

    assert states == ["created", "active", "completed"]


async def test_following_an_ended_job_yields_its_end(boss):
    await boss.create_queue("q")
    id = await boss.send("q")
    await boss.cancel("q", id)

    async with boss.follow("q", id) as following:
        assert [update.state async for update in following] == ["cancelled"]


async def test_a_job_that_does_not_exist_cannot_be_followed(boss):
    await boss.create_queue("q")
    with pytest.raises(trioboss.JobNotFound):
        async with boss.follow("q", "00000000-0000-7000-8000-000000000000"):
            raise AssertionError("not reached")


async def test_a_job_that_is_deleted_ends_the_loop_with_an_error(boss):
    await boss.create_queue("q")
    id = await boss.send("q")
    with trio.fail_after(TIMEOUT):
        async with boss.follow("q", id) as following:
            await anext(following)
            await boss.delete_job("q", id)
            with pytest.raises(trioboss.JobNotFound):
                await anext(following)


async def test_a_refused_send_cannot_be_waited_for(boss):
    await boss.create_queue("q", policy="exclusive")
    await boss.send("q")
    refused = await boss.send("q")

    for waiting in (boss.wait_for("q", refused), boss.follow("q", refused).__aenter__()):
        with pytest.raises(trioboss.UsageError, match="the queue's policy or a throttle refused it"):
            await waiting


async def test_progress_during_an_outage_is_dropped_and_fails_no_job(boss, monkeypatch):
    async def unavailable(*args):
        raise trioboss.DatabaseUnavailable("the server is restarting")

    async def handle(job):
        await job.progress(1)
        return "done"

    monkeypatch.setattr(type(boss._runtime.adapter), "report_progress", unavailable)
    await boss.create_queue("q", retry_limit=0)
    await boss.work("q", handle)
    async with record(boss.events(ErrorEvent)) as recorder:
        with trio.fail_after(TIMEOUT):
            job = await boss.wait_for("q", await boss.send("q"))
            (event,) = await recorder.wait_for(ErrorEvent)

    assert (job.state, job.attempt, job.output) == ("completed", 1, "done")
    assert (str(job.id) in event.actor, event.error) == (True, "the server is restarting")


async def test_a_server_that_does_not_answer_holds_no_handler_up_for_long(boss, monkeypatch):
    async def hang(*args):
        await trio.sleep_forever()

    async def handle(job):
        await job.progress(1)
        return "done"

    monkeypatch.setattr(type(boss._runtime.adapter), "report_progress", hang)
    await boss.create_queue("q", retry_limit=0)
    await boss.work("q", handle)
    with trio.fail_after(TIMEOUT):
        assert (await boss.wait_for("q", await boss.send("q"))).output == "done"


async def test_progress_that_is_no_json_is_a_mistake_of_the_handler(boss):
    async def handle(job):
        await job.progress(object())

    await boss.create_queue("q", retry_limit=0)
    await boss.work("q", handle)
    with trio.fail_after(TIMEOUT):
        job = await boss.wait_for("q", await boss.send("q"))

    assert job.output["name"] == "PayloadError"


async def test_a_boss_forgets_jobs_that_nobody_follows_any_more(boss, other):
    async def until(expected):
        """Notifications arrive when they do, and no event tells of them."""
        while True:
            if boss._runtime.router.followers.ids == expected:
                return
            await trio.sleep(0.01)

    await boss.create_queue("q")
    id = await boss.send("q")
    with trio.fail_after(TIMEOUT):
        async with other.follow("q", id), other.follow("q", id):
            await until({id: 2})
        await until({})
