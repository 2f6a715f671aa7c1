"""send_once and send_singleton: unique jobs, as in pg-boss v6, on a queue of any policy."""

import pytest
import trio
from store_helpers import take, take_all


async def advance(boss, state):
    """Bring the one job of the queue into a state."""
    if state in ("retry", "active", "completed", "failed"):
        job = await take(boss, "q")
    if state == "retry":
        await boss.fail("q", job)
    elif state == "completed":
        await boss.complete("q", job)
    elif state == "failed":
        for _ in range(2):
            await boss.fail("q", job)
            (job,) = await boss.fetch("q")
        await boss.fail("q", job)
    elif state == "cancelled":
        await boss.cancel("q", (await boss.find_jobs("q"))[0].id)


@pytest.mark.parametrize("state", ["created", "retry", "active"])
async def test_send_once_is_refused_until_the_job_has_ended(boss, clock, state):
    await boss.create_queue("q", retry_delay=10 if state == "retry" else 0)
    await boss.send_once("q", 1, "k")
    await advance(boss, state)

    assert await boss.send_once("q", 2, "k") is None


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
async def test_send_once_is_accepted_after_the_job_has_ended(boss, state):
    await boss.create_queue("q")
    await boss.send_once("q", 1, "k")
    await advance(boss, state)

    assert await boss.send_once("q", 2, "k") is not None


@pytest.mark.parametrize("state", ["created", "retry"])
async def test_send_singleton_is_refused_while_a_job_is_queued(boss, clock, state):
    await boss.create_queue("q", retry_delay=10 if state == "retry" else 0)
    await boss.send_singleton("q", 1)
    await advance(boss, state)

    assert await boss.send_singleton("q", 2) is None


@pytest.mark.parametrize("state", ["active", "completed", "failed", "cancelled"])
async def test_send_singleton_is_accepted_once_the_job_has_started(boss, state):
    await boss.create_queue("q")
    await boss.send_singleton("q", 1)
    await advance(boss, state)

    assert await boss.send_singleton("q", 2) is not None


@pytest.mark.parametrize("method", ["send_once", "send_singleton"])
async def test_each_key_counts_for_itself(boss, method):
    await boss.create_queue("q")

    async def send(key):
        if method == "send_once":
            return await boss.send_once("q", key, key)
        return await boss.send_singleton("q", key, singleton_key=key)

    assert [await send(key) is not None for key in ("a", "b", "a", "b")] == [True, True, False, False]


async def test_jobs_sent_by_another_method_do_not_count(boss):
    await boss.create_queue("q")
    await boss.send("q", "plain", singleton_key="k")

    assert await boss.send_once("q", "once", "k") is not None
    assert await boss.send_singleton("q", "singleton", singleton_key="k") is not None
    assert await boss.send("q", "plain again", singleton_key="k") is not None
    assert len(await take_all(boss, "q")) == 4


async def test_a_singleton_that_fails_beside_a_queued_successor_fails_for_good(boss):
    await boss.create_queue("q")
    first = await boss.send_singleton("q", 1)
    job = await take(boss, "q")
    await boss.send_singleton("q", 2)

    await boss.fail("q", job, "broken")

    assert (await boss.get_job_by_id("q", first)).state == "failed"
    assert await take_all(boss, "q") == [2]


async def test_of_fifty_concurrent_sends_one_is_accepted(boss):
    await boss.create_queue("q")
    sent = []

    async def send():
        sent.append(await boss.send_once("q", 1, "k"))

    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(send)

    assert len([id for id in sent if id is not None]) == 1


async def test_sending_the_same_id_again_returns_the_id(boss):
    await boss.create_queue("q")
    id = await boss.send_once("q", 1, "k")

    assert await boss.send_once("q", 1, "k", id=id) == id


@pytest.mark.parametrize("key", ["", None, 5])
async def test_send_once_requires_a_key(offline_boss, key):
    with pytest.raises(ValueError, match=r"^key: "):
        await offline_boss.send_once("q", 1, key)
