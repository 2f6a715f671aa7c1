"""Features for users of pg-boss: requests, patterns, completing queued jobs, reading and deleting, plain SQL queues."""

from uuid import uuid4

import psycopg
import pytest
from store_helpers import take

import trioboss
from trioboss import JobState, NewJob, UnknownQueue, UsageError

# -- requests


@pytest.mark.parametrize(
    "request_",
    [
        {"queue": "q", "data": 1, "options": {"priority": 3}},
        {"name": "q", "data": 1, "priority": 3},
        {"queue": "q", "data": NewJob(1, priority=3)},
        {"queue": "q", "data": 1, "options": {"priority": 2}, "priority": 1},
    ],
)
async def test_a_request_is_a_mapping(q, request_):
    options = {"priority": 3} if "options" in request_ else {}

    assert await q.send(request_, **options) is not None
    job = await take(q, "q")

    assert (job.data, job.priority) == (1, 3)


async def test_a_new_job_can_be_sent_and_its_options_overridden(q):
    await q.send("q", NewJob({"a": 1}, priority=2, singleton_key="k"))
    await q.send("q", NewJob({"a": 2}, priority=2, singleton_key="k"), priority=5)

    jobs = await q.fetch("q", batch_size=9)

    assert [(job.data, job.priority, job.singleton_key) for job in jobs] == [
        ({"a": 2}, 5, "k"),
        ({"a": 1}, 2, "k"),
    ]


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (5, "^queue: 5 is not a name, nor a request"),
        ({"data": 1}, "^queue: a request names its queue once"),
        ({"queue": "q", "name": "q"}, "^queue: a request names its queue once"),
        ({"queue": "q", "options": 5}, "^options: 5 is not a mapping"),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused(q, request_, problem):
    with pytest.raises(UsageError, match=problem):
        await q.send(request_)


async def test_data_beside_a_request_and_options_of_pg_boss_are_refused_with_the_right_name(q):
    with pytest.raises(UsageError, match=r"^data: the request has it"):
        await q.send({"queue": "q"}, 5)
    with pytest.raises(TypeError, match="'retryLimit': did you mean 'retry_limit'"):
        await q.send({"queue": "q", "options": {"retryLimit": 5}})


# -- fetch by pattern


async def test_a_pattern_fetches_from_all_matching_queues_the_best_first(boss):
    for name in ("mail-a", "mail-b", "mail_c", "other"):
        await boss.create_queue(name, policy="singleton" if name == "mail_c" else "standard")
    for number, name in enumerate(("mail-b", "mail-a", "mail_c", "other", "mail-a")):
        await boss.send(name, number, priority=5 if number == 4 else 0)

    assert [job.data for job in await boss.fetch("mail*", batch_size=2)] == [4, 1]
    assert [job.data for job in await boss.fetch("mail*", batch_size=9)] == [0, 2]
    assert await boss.fetch("mail*") == []
    assert await boss.fetch("*nothing*") == []
    assert [job.queue for job in await boss.fetch("o*r")] == ["other"]


async def test_an_underscore_of_a_pattern_is_only_an_underscore(boss):
    await boss.create_queue("a-b")
    await boss.send("a-b")

    assert await boss.fetch("a_*") == []
    with pytest.raises(UsageError, match="is not a name"):
        await boss.fetch("a%*")


# -- completing queued jobs


async def test_queued_jobs_are_completed_if_asked_for(q):
    ids = [await q.send("q", number, start_after=60 * (number == 1)) for number in range(3)]
    active = await take(q, "q")

    done = await q.complete("q", ids, {"by": "hand"}, include_queued=True)

    assert (done.requested, done.affected) == (3, 3)
    jobs = [await q.get_job_by_id("q", id) for id in ids]
    assert [(job.state, job.output, job.attempt) for job in jobs] == [("completed", {"by": "hand"}, 1)] * 3
    assert active.id == ids[0]
    assert all(job.started_on <= job.completed_on for job in jobs)


async def test_a_queued_job_is_not_completed_unless_asked_for(q):
    id = await q.send("q")
    job = await q.get_job_by_id("q", id)

    with pytest.raises(trioboss.JobNotFound):
        await q.complete("q", id)
    with pytest.raises(trioboss.LeaseLost):
        await q.complete("q", job)
    assert (await q.complete("q", job, include_queued=True)).affected == 1


async def test_completing_a_queued_job_frees_its_key_and_makes_a_completion_job(boss):
    await boss.create_queue("q", policy="key_strict_fifo")
    assert await boss.fetch_completed("q") == []
    first = await boss.send("q", 1, singleton_key="k")
    await boss.send("q", 2, singleton_key="k")
    await boss.complete("q", first, include_queued=True)

    (completion,) = await boss.fetch_completed("q")

    assert (completion.data["request"]["id"], completion.data["state"]) == (str(first), "completed")
    assert (await take(boss, "q")).data == 2


async def test_a_queue_that_keeps_nothing_keeps_nothing_of_completed_queued_jobs(boss):
    await boss.create_queue("q", keep_completed=False)
    id = await boss.send("q")
    await boss.complete("q", id, include_queued=True)

    assert await boss.get_job_by_id("q", id) is None


# -- reading and deleting


async def test_get_queues_by_names_and_unknown_queues_raise_everywhere(q):
    await q.create_queue("p")
    assert [queue.name for queue in await q.get_queues(["q", "p", "q"])] == ["p", "q"]
    assert await q.get_queues([]) == []
    for call in (
        lambda: q.get_queues(["q", "nowhere"]),
        lambda: q.get_job_by_id("nowhere", uuid4()),
        lambda: q.find_jobs("nowhere"),
        lambda: q.get_schedules("nowhere"),
        lambda: q.unschedule("nowhere"),
        lambda: q.unsubscribe("event", "nowhere"),
        lambda: q.get_warnings("nowhere"),
        lambda: q.fetch("nowhere"),
        lambda: q.update_job("nowhere", uuid4(), data=1),
        lambda: q.complete("nowhere", uuid4(), include_queued=True),
    ):
        with pytest.raises(UnknownQueue, match="'nowhere'"):
            await call()


async def test_queued_jobs_are_found_by_a_filter(q):
    ids = [await q.send("q", number, retry_delay=60) for number in range(4)]
    await q.complete("q", await take(q, "q"))
    await q.fail("q", await take(q, "q"))
    await take(q, "q")

    assert [job.state for job in await q.find_jobs("q", queued=True)] == [JobState.RETRY, JobState.CREATED]
    assert [job.id for job in await q.find_jobs("q", queued=True, newest=True)] == [ids[3], ids[1]]
    assert await q.find_jobs("q", queued=True, id=ids[2]) == []
    assert len(await q.find_jobs("q", queued=False)) == 4


async def test_queued_jobs_of_all_queues_are_deleted_and_the_others_stay(q):
    await q.create_queue("p")
    for name in ("q", "p"):
        await q.insert(name, [{} for _ in range(3)])
    await q.complete("q", await take(q, "q"))
    active = await take(q, "q")

    assert await q.delete_all_queued_jobs() == 4
    assert [job.state for job in await q.find_jobs("q")] == ["completed", "active"]
    assert (await q.complete("q", active)).affected == 1


async def test_a_job_of_an_open_transaction_can_be_read_in_it(q):
    async with q.transaction() as conn:
        id = await q.send("q", 5, conn=conn)

        assert (await q.get_job_by_id("q", id, conn=conn)).data == 5
        assert [job.id for job in await q.find_jobs("q", conn=conn)] == [id]
        assert await q.get_job_by_id("q", id) is None


# -- queues by plain SQL


def create(database, name, options="{}"):
    return database.execute("select trioboss.create_queue(%s, %s)", (name, options)).fetchone()[0]


async def test_a_queue_is_created_and_deleted_by_plain_sql(boss, database):
    options = '{"policy": "singleton_strict_fifo", "partition": true, "retry_backoff": true, "expire_in": 60}'

    assert create(database, "q", options)
    assert not create(database, "q", options)
    assert not create(database, "q")
    queue = await boss.get_queue("q")
    assert (queue.policy, queue.partition, queue.expire_in) == ("key_strict_fifo", True, 60.0)
    assert (queue.retry_limit, queue.retry_jitter, queue.retention) == (2, 0.5, 14 * 86400.0)
    await boss.send("q", 1, singleton_key="k")
    assert (await take(boss, "q")).data == 1
    assert database.execute("select * from trioboss.delete_queue('q')").fetchall() == [("q",)]
    assert await boss.get_queue("q") is None
    assert database.execute("select * from trioboss.delete_queue('q')").fetchall() == []


async def test_a_queue_of_plain_sql_is_the_same_as_that_of_the_method(boss, database):
    create(database, "a")
    await boss.create_queue("a")
    await boss.create_queue("b", policy="short", dead_letter="a")

    assert not create(database, "b", '{"policy": "debounced", "dead_letter": "a"}')
    assert not create(database, "a", None)


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("q", '{"retries": 5}', "retries: a queue has no such option"),
        ("q", '{"expire_in": 0}', "queue_expire_in"),
        ("q", '{"policy": "fifo"}', "queue_policy"),
        ("q", '{"dead_letter": "nowhere"}', "queue_dead_letter_fkey"),
        ("q", '{"retry_limit": null}', "null value"),
        ("q", "[]", r"options: \[\] is not an object"),
        ("a b", "{}", "queue_name"),
        (None, "{}", "NULL is not a name for a queue"),
        ("__state__completed__q", "{}", "is not a name for a queue"),
        ("other", '{"retry_limit": 9}', "queue other exists with other options"),
    ],
)
async def test_a_queue_that_makes_no_sense_is_refused_by_plain_sql(boss, database, name, options, problem):
    await boss.create_queue("other")

    with pytest.raises(psycopg.Error, match=problem):
        create(database, name, options)
    assert [queue.name for queue in await boss.get_queues()] == ["other"]
