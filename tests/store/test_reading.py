"""get_job_by_id and find_jobs: methods that only read."""

from datetime import UTC, datetime, timedelta

import pytest
from store_helpers import fail_for_good, make_one_of_each

import trioboss
from trioboss import JobState
from trioboss.model.ids import make_id


@pytest.mark.parametrize("state", list(JobState))
async def test_a_job_is_found_by_its_id_in_whatever_state(q, state):
    ids = await make_one_of_each(q)

    job = await q.get_job_by_id("q", ids[state])

    assert (job.id, job.state, job.queue) == (ids[state], state, "q")
    assert await q.get_job_by_id("q", str(ids[state])) == job


async def test_a_job_that_does_not_exist_is_none(q):
    await q.create_queue("other")
    id = await q.send("other")

    assert await q.get_job_by_id("q", make_id()) is None
    assert await q.get_job_by_id("q", id) is None


async def test_times_are_in_utc(q):
    id = await q.send("q", start_after=datetime(2030, 6, 1, 12, tzinfo=UTC))

    job = await q.get_job_by_id("q", id)

    assert job.start_after.utcoffset() == job.created_on.utcoffset() == timedelta(0)


async def test_all_jobs_live_and_ended_are_found_in_order_of_sending(q):
    ids = await make_one_of_each(q)

    found = await q.find_jobs("q")

    assert {job.id for job in found} == set(ids.values())
    assert [job.seq for job in found] == sorted(job.seq for job in found)


@pytest.mark.parametrize("state", list(JobState))
async def test_jobs_are_found_by_state(q, state):
    ids = await make_one_of_each(q)

    assert [job.id for job in await q.find_jobs("q", state=state)] == [ids[state]]
    assert [job.id for job in await q.find_jobs("q", state=state.value)] == [ids[state]]


@pytest.mark.parametrize("state", list(JobState))
@pytest.mark.parametrize("newest", [False, True])
async def test_queued_and_a_state_are_both_required(q, state, newest):
    ids = await make_one_of_each(q)

    found = await q.find_jobs("q", queued=True, state=state, newest=newest)

    assert [job.id for job in found] == ([ids[state]] if state in ("created", "retry") else [])


async def test_the_throttle_slot_of_a_job_is_in_utc(q):
    id = await q.send("q", singleton_seconds=60)

    read = await q.get_job_by_id("q", id)
    [claimed] = await q.fetch("q")

    assert read.singleton_on == claimed.singleton_on
    assert read.singleton_on.utcoffset() == claimed.singleton_on.utcoffset() == timedelta(0)


async def test_jobs_are_found_by_what_their_data_contains(q):
    for data in ({"to": "a", "n": 1}, {"to": "b", "n": 1}, {"to": "a", "n": 2, "tags": ["x", "y"]}, None, 5):
        await q.send("q", data)

    async def find(data):
        return [job.data for job in await q.find_jobs("q", data=data)]

    assert [data["n"] for data in await find({"to": "a"})] == [1, 2]
    assert [data["n"] for data in await find({"tags": ["y"]})] == [2]
    assert await find(5) == [5]
    assert await find({"to": "c"}) == []


async def test_jobs_are_found_by_key_and_id(q):
    id = await q.send("q", singleton_key="k")
    await q.send("q", singleton_key="other")

    assert [job.id for job in await q.find_jobs("q", singleton_key="k")] == [id]
    assert [job.id for job in await q.find_jobs("q", id=str(id))] == [id]
    assert await q.find_jobs("q", id=id, singleton_key="other") == []


async def test_jobs_are_found_page_by_page(q):
    await q.insert("q", [{"data": i} for i in range(10)])
    await q.complete("q", await q.fetch("q", batch_size=4))

    pages, after = [], None
    for _ in range(4):
        page = await q.find_jobs("q", limit=3, after=after)
        pages.append([job.data for job in page])
        after = page[-1].id

    assert pages == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert await q.find_jobs("q", after=after) == []


async def test_a_thousand_jobs_are_a_page_unless_said_otherwise(q):
    await q.insert("q", ({} for _ in range(1001)))

    assert len(await q.find_jobs("q")) == 1000
    assert len(await q.find_jobs("q", limit=1001)) == 1001


async def test_a_filter_that_is_none_lets_all_pass(q):
    await q.send("q", 1)

    assert len(await q.find_jobs("q", id=None, state=None, data=None, singleton_key=None)) == 1


async def test_ended_jobs_of_a_deleted_queue_can_be_read(q):
    job = await fail_for_good(q, "q")
    await q.delete_queue("q")

    assert (await q.get_job_by_id("q", job.id)).state == "failed"
    assert [found.id for found in await q.find_jobs("q")] == [job.id]
    with pytest.raises(trioboss.UnknownQueue):
        await q.find_jobs("q", state="completed")


@pytest.mark.parametrize(
    "bad",
    [
        {"id": "x"},
        {"source_id": 5},
        {"state": "done"},
        {"singleton_key": ""},
        {"data": {1}},
        {"limit": 0},
        {"limit": "many"},
        {"after": "x"},
        {"after": 5},
        {"since": "yesterday"},
        {"until": 5},
        {"newest": "yes"},
    ],
)
async def test_a_bad_filter_is_refused_by_name(offline_boss, bad):
    with pytest.raises(ValueError, match=f"^{next(iter(bad))}: "):
        await offline_boss.find_jobs("q", **bad)


async def test_an_unknown_filter_is_a_type_error_that_lists_those_there_are(offline_boss):
    with pytest.raises(TypeError, match=r"unexpected option 'colour'.*singleton_key"):
        await offline_boss.find_jobs("q", colour="red")
