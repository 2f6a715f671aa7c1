"""One job in each slot of time: send_throttled, send_debounced, singleton_seconds."""

from datetime import UTC, datetime, timedelta

import pytest
import trio
from store_helpers import take, take_all

import trioboss
from trioboss.model.ids import make_id


async def slots(boss, database):
    rows = database.execute(
        "select key, extract(epoch from slot - '2030-01-01 12:00Z')::int from trioboss.throttle"
    )
    return sorted(rows.fetchall())


async def test_one_job_is_accepted_in_each_slot(boss, clock):
    await boss.create_queue("q")

    first = await boss.send_throttled("q", 1, 60)
    refused = await boss.send_throttled("q", 2, 60)
    clock.advance(60)
    second = await boss.send_throttled("q", 3, 60)

    assert first is not None
    assert refused is None
    assert second is not None
    assert await take_all(boss, "q") == [1, 3]


async def test_slots_are_counted_from_the_epoch_not_from_the_first_job(boss, clock):
    await boss.create_queue("q")

    clock.advance(59)
    assert await boss.send_throttled("q", 1, 60) is not None
    clock.advance(1)
    assert await boss.send_throttled("q", 2, 60) is not None


async def test_slots_of_odd_length_are_counted_from_the_epoch_too(boss, clock, database):
    await boss.create_queue("q")
    await boss.send_throttled("q", 1, 7)

    ((slot,),) = database.execute("select slot from trioboss.throttle").fetchall()

    assert slot.timestamp() % 7 == 0
    assert timedelta(0) <= clock.now - slot < timedelta(seconds=7)


async def test_each_key_has_slots_of_its_own(boss, clock):
    await boss.create_queue("q")

    sent = [await boss.send_throttled("q", key, 60, key) for key in ("a", "b", None, "a", "b", None)]

    assert [id is not None for id in sent] == [True, True, True, False, False, False]


async def test_each_queue_has_slots_of_its_own(boss, clock):
    await boss.create_queue("a")
    await boss.create_queue("b")

    assert await boss.send_throttled("a", 1, 60) is not None
    assert await boss.send_throttled("b", 1, 60) is not None


@pytest.mark.parametrize("method", ["complete", "fail"])
async def test_a_job_that_has_ended_still_occupies_its_slot(boss, clock, method):
    await boss.create_queue("q", retry_limit=0)
    await boss.send_throttled("q", 1, 60)
    await getattr(boss, method)("q", await boss.fetch("q"))

    assert await boss.send_throttled("q", 2, 60) is None


async def test_a_job_that_left_no_row_still_occupies_its_slot(boss, clock):
    await boss.create_queue("q", keep_completed=False)
    await boss.send_throttled("q", 1, 60)
    await boss.complete("q", await boss.fetch("q"))

    assert await boss.send_throttled("q", 2, 60) is None


@pytest.mark.parametrize("method", ["cancel", "delete_job"])
async def test_a_job_that_was_cancelled_or_deleted_frees_its_slot(boss, clock, method):
    await boss.create_queue("q")
    id = await boss.send_throttled("q", 1, 60)
    await getattr(boss, method)("q", id)

    assert await boss.send_throttled("q", 2, 60) is not None


@pytest.mark.parametrize("method", ["delete_queued_jobs", "delete_all_jobs"])
async def test_deleting_all_jobs_frees_their_slots(boss, clock, method):
    await boss.create_queue("q")
    await boss.send_throttled("q", 1, 60)
    await getattr(boss, method)("q")

    assert await boss.send_throttled("q", 2, 60) is not None


async def test_a_debounced_job_gets_the_next_slot_and_starts_with_it(boss, clock):
    await boss.create_queue("q")
    clock.advance(10)

    first = await boss.send_debounced("q", 1, 60)
    second = await boss.send_debounced("q", 2, 60)
    third = await boss.send_debounced("q", 3, 60)

    assert third is None
    assert (await boss.get_job_by_id("q", first)).start_after == clock.now
    assert (await boss.get_job_by_id("q", second)).start_after == clock.now + timedelta(seconds=50)
    assert await take_all(boss, "q") == [1]
    clock.advance(50)
    assert await take_all(boss, "q") == [2]


async def test_a_debounced_job_holds_the_slot_that_it_waits_for(boss, clock):
    await boss.create_queue("q")
    await boss.send_debounced("q", 1, 60)
    await boss.send_debounced("q", 2, 60)

    clock.advance(60)

    assert await boss.send_throttled("q", 3, 60) is None


async def test_a_debounced_job_that_is_deferred_anyway_starts_as_late_as_it_asked(boss, clock):
    await boss.create_queue("q")
    await boss.send_debounced("q", 1, 60)
    id = await boss.send_debounced("q", 2, 60, start_after=600)

    assert (await boss.get_job_by_id("q", id)).start_after == clock.now + timedelta(seconds=600)


async def test_the_options_of_send_throttle_in_the_same_way(boss, clock):
    await boss.create_queue("q")
    slot = {"singleton_seconds": timedelta(minutes=1), "singleton_key": "k"}

    assert await boss.send("q", 1, **slot) is not None
    assert await boss.send("q", 2, **slot) is None
    assert await boss.send("q", 3, **slot, singleton_next_slot=True) is not None
    assert await boss.send("q", 4, **slot, singleton_next_slot=True) is None


async def test_the_slot_is_written_in_the_job(boss, clock, database):
    await boss.create_queue("q")
    clock.advance(61)
    await boss.send_throttled("q", 1, 60)

    assert database.execute("select singleton_on from trioboss.job").fetchone() == (
        datetime(2030, 1, 1, 12, 1),
    )


@pytest.mark.parametrize("method", ["send_throttled", "send_debounced"])
async def test_a_job_that_the_policy_refuses_returns_its_slot(boss, clock, method):
    await boss.create_queue("q", policy="short")
    id = await boss.send("q", "in the way")

    assert await getattr(boss, method)("q", 1, 60) is None
    await boss.cancel("q", id)
    assert await getattr(boss, method)("q", 2, 60) is not None


async def test_a_published_job_that_a_policy_refuses_returns_its_slot(boss, clock, database):
    await boss.create_queue("open")
    await boss.create_queue("full", policy="short")
    await boss.subscribe("event", "open")
    await boss.subscribe("event", "full")
    await boss.send("full")

    assert len(await boss.publish("event", singleton_seconds=60)) == 1
    assert database.execute("select array_agg(queue) from trioboss.throttle").fetchone() == (["open"],)


async def test_sending_a_live_job_again_takes_no_other_slot(boss, clock, database):
    await boss.create_queue("q")
    id = await boss.send_throttled("q", 1, 60)
    clock.advance(60)

    assert await boss.send_throttled("q", 1, 60, id=id) == id
    assert await slots(boss, database) == [("", 0)]
    assert await boss.send_throttled("q", 2, 60) is not None


@pytest.mark.parametrize("later", [0, 60])
async def test_sending_an_ended_job_again_takes_and_frees_no_slot(boss, clock, database, later):
    await boss.create_queue("q")
    id = await boss.send_throttled("q", 1, 60)
    await boss.complete("q", await boss.fetch("q"))
    clock.advance(later)

    assert await boss.send_throttled("q", 1, 60, id=id) == id
    assert await slots(boss, database) == [("", 0)]


async def test_a_resumed_job_does_not_need_its_slot_back(boss, clock):
    await boss.create_queue("q")
    first = await boss.send_throttled("q", 1, 60)
    await boss.cancel("q", first)
    await boss.send_throttled("q", 2, 60)

    await boss.resume("q", first)

    assert sorted(await take_all(boss, "q")) == [1, 2]


@pytest.mark.parametrize("policy", ["singleton", "stately", "key_strict_fifo", "exclusive"])
async def test_every_policy_can_be_throttled(boss, clock, policy):
    await boss.create_queue("q", policy=policy)

    assert await boss.send_throttled("q", 1, 60, "k") is not None
    assert await boss.send_throttled("q", 2, 60, "k") is None
    assert (await take(boss, "q")).data == 1


async def test_a_throttled_job_of_strict_fifo_needs_a_key(boss):
    await boss.create_queue("q", policy="key_strict_fifo")

    with pytest.raises(ValueError, match="require a singleton_key"):
        await boss.send_throttled("q", 1, 60)


async def test_a_key_among_the_options_counts(boss, clock):
    await boss.create_queue("q")

    assert await boss.send_throttled("q", 1, 60, singleton_key="a") is not None
    assert await boss.send_throttled("q", 2, 60, singleton_key="b") is not None
    assert await boss.send_throttled("q", 3, 60, "a") is None


@pytest.mark.parametrize("seconds", [0, -1, None, "60", float("nan")])
async def test_a_slot_without_length_is_refused_by_name(offline_boss, seconds):
    with pytest.raises(ValueError, match=r"^seconds: "):
        await offline_boss.send_throttled("q", 1, seconds)


@pytest.mark.parametrize("method", ["send_throttled", "send_debounced"])
async def test_a_bad_key_is_refused_by_name(offline_boss, method):
    with pytest.raises(ValueError, match=r"^key: "):
        await getattr(offline_boss, method)("q", 1, 60, "")


async def test_throttling_in_a_queue_that_does_not_exist_names_it(boss):
    with pytest.raises(trioboss.UnknownQueue, match="'nowhere'"):
        await boss.send_throttled("nowhere", 1, 60)


async def test_of_a_hundred_concurrent_sends_one_is_accepted_for_each_slot_and_key(boss, clock, database):
    await boss.create_queue("q")
    accepted = []

    async def send(method, key):
        if await method("q", key, 60, key) is not None:
            accepted.append((method.__name__, key))

    for _ in range(2):
        async with trio.open_nursery() as nursery:
            for i in range(50):
                nursery.start_soon(send, boss.send_throttled, f"k{i % 2}")
                nursery.start_soon(send, boss.send_debounced, f"d{i % 2}")
        clock.advance(60)

    assert await slots(boss, database) == [
        *[("d0", 0), ("d0", 60), ("d0", 120), ("d1", 0), ("d1", 60), ("d1", 120)],
        *[("k0", 0), ("k0", 60), ("k1", 0), ("k1", 60)],
    ]
    assert len(accepted) == 10
    assert database.execute("select count(*) from trioboss.job").fetchone() == (10,)


async def test_of_concurrent_sends_across_a_boundary_one_is_accepted_in_each_slot(boss, database):
    await boss.create_queue("q")
    await boss.get_queue("q")  # so that each send below is one statement, made when its task begins
    boundary = datetime(2030, 1, 1, 12, 1, tzinfo=UTC)

    async def send(i):
        boss._store.context.now = boundary + timedelta(milliseconds=i - 50)
        await boss.send_throttled("q", i, 60, id=make_id())

    async with trio.open_nursery() as nursery:
        for i in range(100):
            nursery.start_soon(send, i)

    assert await slots(boss, database) == [("", 0), ("", 60)]
    assert database.execute("select count(*) from trioboss.job").fetchone() == (2,)
