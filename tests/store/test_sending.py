"""send and its options, send_after."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_helpers import open_quiet_boss, take, take_all

import trioboss
from trioboss.model.ids import make_id


async def test_a_job_comes_back_as_it_was_sent(boss):
    await boss.create_queue("email")

    id = await boss.send("email", {"to": ["a", "b"], "cost": 1e16, "deep": {"null": None}})
    job = await take(boss, "email")

    assert job.id == id
    assert job.queue == "email"
    assert job.data == {"to": ["a", "b"], "cost": 1e16, "deep": {"null": None}}
    assert isinstance(job.data["cost"], float)


@pytest.mark.parametrize("data", [None, False, 0, "", [], {}, "null", 2**70])
async def test_data_is_any_json(boss, data):
    await boss.create_queue("q")
    await boss.send("q", data)

    assert (await take(boss, "q")).data == data


async def test_a_job_without_options_has_those_of_its_queue(boss, clock):
    await boss.create_queue("dead")
    options = {"retry_limit": 5, "retry_delay": 3.0, "retry_backoff": True, "retry_delay_max": 60.0}
    options |= {"expire_in": 30.0, "heartbeat": 10.0, "auto_heartbeat": False, "max_lease_extensions": 1}
    await boss.create_queue("q", **options, retention=60, dead_letter="dead")

    id = await boss.send("q")
    job = await boss.get_job_by_id("q", id)

    assert {name: getattr(job, name) for name in options} == options
    assert job.dead_letter == "dead"
    assert job.created_on == job.start_after == clock.now
    assert job.keep_until == clock.now + timedelta(seconds=60)
    assert (job.state, job.attempt, job.retry_count, job.priority) == ("created", 0, 0, 0)
    assert job.started_on is job.completed_on is job.output is job.singleton_key is None


async def test_an_option_of_send_overrides_that_of_the_queue(boss, clock):
    await boss.create_queue("dead")
    await boss.create_queue("q", retry_limit=1, expire_in=1, heartbeat=1, retry_delay=1)
    options = {"retry_limit": 5, "retry_delay": 3.0, "retry_backoff": True, "retry_delay_max": 60.0}
    options |= {"expire_in": 30.0, "heartbeat": 10.0, "auto_heartbeat": False, "max_lease_extensions": 1}
    options |= {"priority": -3, "singleton_key": "k", "dead_letter": "dead"}

    id = await boss.send("q", **options, start_after=10, retention=60)
    job = await boss.get_job_by_id("q", id)

    assert {name: getattr(job, name) for name in options} == options
    assert job.start_after == clock.now + timedelta(seconds=10)
    assert job.keep_until == clock.now + timedelta(seconds=70)


async def test_options_that_a_job_object_does_not_have_are_in_the_view(boss, database):
    await boss.create_queue("q")
    await boss.send("q", delete_after=5, retry_jitter=0.1, retry_window=7)
    await boss.send("q", retry_backoff=True)

    rows = database.execute(
        "select delete_after, retry_jitter, retry_window from trioboss.job order by seq"
    ).fetchall()

    assert rows[0] == (timedelta(seconds=5), 0.1, timedelta(seconds=7))
    assert rows[1] == (timedelta(days=7), 0.5, None)


async def test_sending_to_a_queue_that_does_not_exist_names_it(boss):
    with pytest.raises(trioboss.UnknownQueue, match="'nowhere'"):
        await boss.send("nowhere")


async def test_sending_to_a_queue_that_was_just_deleted_names_it(boss, dsn):
    await boss.create_queue("q")
    await boss.send("q")
    async with open_quiet_boss(dsn) as other:
        await other.delete_queue("q")

    with pytest.raises(trioboss.UnknownQueue, match="'q'"):
        await boss.send("q")


async def test_a_dead_letter_queue_that_does_not_exist_is_named(boss):
    await boss.create_queue("q")

    with pytest.raises(trioboss.UnknownQueue, match="'dead'"):
        await boss.send("q", dead_letter="dead")
    assert await boss.fetch("q") == []


@pytest.mark.parametrize("data", [float("nan"), "\0", "\ud800", b"x", {1: 2}, -0.0, (1,), {"a": {1}}])
async def test_data_that_cannot_come_back_is_refused_before_any_sql(offline_boss, data):
    with pytest.raises(trioboss.PayloadError, match=r"^data\.x\[1\]"):
        await offline_boss.send("q", {"x": [1, data]})


@pytest.mark.parametrize("option", [{"priority": "high"}, {"start_after": -1}, {"id": 5}, {"expire_in": 0}])
async def test_a_bad_option_is_refused_before_any_sql(offline_boss, option):
    with pytest.raises(ValueError, match=f"^{next(iter(option))}: "):
        await offline_boss.send("q", **option)


@pytest.mark.parametrize("name", ["", "a b", "🙂", "%s", None])
async def test_a_bad_name_is_refused_before_any_sql(offline_boss, name):
    with pytest.raises(ValueError, match=r"^queue: "):
        await offline_boss.send(name)


async def test_an_unknown_option_is_a_type_error(offline_boss):
    with pytest.raises(TypeError, match="'delay'"):
        await offline_boss.send("q", delay=5)


async def test_a_boss_may_allow_smaller_payloads(dsn):
    async with open_quiet_boss(dsn, max_payload=10) as boss:
        await boss.create_queue("q")

        await boss.send("q", "x" * 8)
        with pytest.raises(trioboss.PayloadError, match="11 bytes of JSON, 10 are allowed"):
            await boss.send("q", "x" * 9)


async def test_strict_fifo_needs_a_key(boss):
    await boss.create_queue("q", policy="key_strict_fifo")

    with pytest.raises(ValueError, match=r"^key_strict_fifo queues require a singleton_key"):
        await boss.send("q")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    key=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=50)
)
def test_any_key_comes_back_as_it_was_given(sync_boss, key):
    sync_boss.create_queue("q")
    id = sync_boss.send("q", singleton_key=key)
    sync_boss.insert("q", [{"singleton_key": key}, {"singleton_key": key, "id": uuid4()}])

    found = sync_boss.find_jobs("q", singleton_key=key)

    assert id in {job.id for job in found}
    assert [job.singleton_key for job in found] == [key] * 3
    sync_boss.delete_job("q", [job.id for job in found])


async def test_a_given_id_is_the_id_of_the_job(boss):
    await boss.create_queue("q")
    id = make_id()

    assert await boss.send("q", id=id) == id
    assert (await take(boss, "q")).id == id


@pytest.mark.parametrize("state", ["created", "active", "completed", "cancelled", "failed"])
async def test_the_same_id_twice_is_one_job_whatever_became_of_it(boss, state):
    await boss.create_queue("q", retry_limit=0)
    id = await boss.send("q", "first")
    if state not in ("created", "cancelled"):
        await boss.fetch("q")
    method = {"completed": boss.complete, "cancelled": boss.cancel, "failed": boss.fail}.get(state)
    if method:
        await method("q", id)

    assert await boss.send("q", "second", id=id) == id
    (job,) = await boss.find_jobs("q")
    assert (job.state, job.data) == (state, "first")


async def test_the_same_id_in_two_queues_is_two_jobs(boss):
    await boss.create_queue("a")
    await boss.create_queue("b")
    id = await boss.send("a", "a")

    assert await boss.send("b", "b", id=id) == id
    assert await take_all(boss, "a") == ["a"]
    assert await take_all(boss, "b") == ["b"]


async def test_a_deleted_job_can_be_sent_again(boss):
    await boss.create_queue("q")
    id = await boss.send("q", "first")
    await boss.delete_job("q", id)

    await boss.send("q", "second", id=id)

    assert (await take(boss, "q")).data == "second"


@pytest.mark.parametrize(
    "after", [60, 60.0, timedelta(minutes=1), "2030-01-01T12:01:00Z", "2030-01-01 12:01+00:00"]
)
async def test_a_deferred_job_starts_when_its_time_has_come(boss, clock, after):
    await boss.create_queue("q")
    id = await boss.send_after("q", "late", after)

    clock.advance(59)
    assert await boss.fetch("q") == []
    clock.advance(1)
    assert (await take(boss, "q")).id == id


async def test_a_time_in_the_past_is_now(boss, clock):
    await boss.create_queue("q")
    await boss.send_after("q", 1, datetime(2001, 1, 1, tzinfo=UTC))

    job = await take(boss, "q")

    assert job.start_after == datetime(2001, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("path", ["send", "throttled", "copied", "staged"])
async def test_a_time_in_the_past_does_not_make_the_job_too_old_to_keep(boss, clock, path):
    await boss.create_queue("q", retention=60)
    options = {"start_after": datetime(2001, 1, 1, tzinfo=UTC)}
    if path == "send":
        await boss.send("q", **options)
    elif path == "throttled":
        await boss.send_throttled("q", None, 60, **options)
    else:
        await boss.insert("q", [options if path == "copied" else {**options, "id": make_id()}])

    (job,) = await boss.find_jobs("q")

    assert job.keep_until == clock.now + timedelta(seconds=60)


@pytest.mark.parametrize("after", [-1, None, "soon", float("inf"), datetime.max.replace(tzinfo=UTC)])
async def test_a_bad_time_is_refused_by_name(offline_boss, after):
    with pytest.raises(ValueError, match=r"^after: "):
        await offline_boss.send_after("q", None, after)


async def test_jobs_sent_concurrently_are_all_there(boss):
    await boss.create_queue("q")

    async with trio.open_nursery() as nursery:
        for i in range(50):
            nursery.start_soon(boss.send, "q", i)

    assert sorted(await take_all(boss, "q")) == list(range(50))


@pytest.mark.parametrize(
    ("method", "arguments", "option"),
    [
        ("send_after", [60], {"start_after": 5}),
        ("send_throttled", [60], {"singleton_seconds": 5}),
        ("send_throttled", [60, "k"], {"singleton_key": "l"}),
        ("send_debounced", [60], {"singleton_next_slot": False}),
        ("send_once", ["k"], {"singleton_key": "l"}),
    ],
)
async def test_an_option_that_repeats_an_argument_is_refused(offline_boss, method, arguments, option):
    with pytest.raises(trioboss.UsageError, match=f"^{next(iter(option))}: "):
        await getattr(offline_boss, method)("q", None, *arguments, **option)
