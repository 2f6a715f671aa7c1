"""Why a job is not running: the first obstacle, in a sentence."""

from datetime import timedelta

import pytest
from store_helpers import fail_for_good, make_one_of_each, take

import trioboss
from trioboss import Reason
from trioboss.model.ids import make_id


async def explain(boss, id, reason):
    explanation = await boss.why("q", id)
    assert explanation.reason is reason
    assert str(explanation) == explanation.text
    return explanation


async def test_why_a_job_is_unknown(q):
    id = make_id()

    assert str(id) in (await explain(q, id, Reason.UNKNOWN)).text


@pytest.mark.parametrize("state", ["completed", "cancelled", "failed"])
async def test_why_a_job_that_has_ended_does_not_run(q, clock, state):
    ids = await make_one_of_each(q)

    explanation = await explain(q, ids[state], Reason.ENDED)

    assert (
        explanation.text == f"it {'was ' if state == 'cancelled' else ''}{state} at 2030-01-01 12:00:00 UTC"
    )


async def test_why_a_failed_job_of_strict_fifo_does_not_run(boss):
    await boss.create_queue("q", policy="key_strict_fifo")
    failed = await fail_for_good(boss, "q", singleton_key="k")

    assert "blocks key 'k': retry it or delete it" in (await explain(boss, failed.id, Reason.ENDED)).text


async def test_why_says_that_a_running_job_runs(q):
    await q.send("q")
    job = await take(q, "q")

    assert "a caller that fetched it" in (await explain(q, job.id, Reason.RUNNING)).text


async def test_why_a_job_of_a_paused_queue_does_not_run(q):
    id = await q.send("q", start_after=60)
    await q.pause("q")

    assert (await explain(q, id, Reason.PAUSED)).text == "its queue is paused: unpause it"


@pytest.mark.parametrize("policy", ["standard", "key_strict_fifo"])
async def test_why_a_deferred_job_does_not_run(boss, clock, policy):
    await boss.create_queue("q", policy=policy)
    id = await boss.send("q", start_after=60, singleton_key="k")

    explanation = await explain(boss, id, Reason.DEFERRED)

    assert explanation.until == clock.now + timedelta(seconds=60)
    assert explanation.text == "it is deferred until 2030-01-01 12:01:00 UTC"


async def test_why_a_job_that_waits_for_its_retry_does_not_run(boss, clock):
    await boss.create_queue("q", retry_delay=60)
    id = await boss.send("q")
    await boss.fail("q", await boss.fetch("q"))

    await explain(boss, id, Reason.DEFERRED)


async def test_why_a_job_of_a_blocked_key_does_not_run(boss):
    await boss.create_queue("q", policy="key_strict_fifo")
    failed = await fail_for_good(boss, "q", singleton_key="k")
    id = await boss.send("q", singleton_key="k")

    explanation = await explain(boss, id, Reason.BLOCKED_KEY)

    assert explanation.behind == failed.id
    assert f"key 'k' is blocked by job {failed.id}" in explanation.text


@pytest.mark.parametrize("key", ["k", None])
async def test_why_a_job_behind_another_one_does_not_run(boss, key):
    await boss.create_queue("q", policy="singleton")
    first = await boss.send("q", singleton_key=key)
    await boss.fetch("q")
    id = await boss.send("q", singleton_key=key)

    explanation = await explain(boss, id, Reason.BEHIND)

    assert explanation.behind == first
    assert ("of key 'k'" if key else "of its queue") in explanation.text
    assert "which is active (policy singleton)" in explanation.text


async def test_why_a_job_behind_one_that_was_not_admitted_yet_does_not_run(boss):
    await boss.create_queue("q", policy="key_strict_fifo")
    first = await boss.send("q", singleton_key="k")
    id = await boss.send("q", singleton_key="k")

    assert (await explain(boss, id, Reason.BEHIND)).behind == first


async def test_why_a_job_without_a_worker_does_not_run(q):
    id = await q.send("q")

    assert (await explain(q, id, Reason.NO_WORKER)).text == "no worker takes jobs of its queue: start one"


LOCK = 4711  # of the boss whose session is the test's connection


@pytest.fixture
def add_worker(database):
    """Adds workers: those with LOCK are connected, those with another lock are not, those without one are pooled."""

    def add(lock=LOCK, *, queue="q", slots=2, seen="2029-12-31 23:59:59Z", pid=None, gone=None):
        id = make_id()
        database.execute(
            "insert into trioboss.worker (id, boss, name, queue, lock, pid, seen_on, gone_since, info) "
            "values (%s, gen_random_uuid(), 'w', %s, %s, %s, %s, %s, jsonb_build_object('slots', %s::int))",
            [id, queue, lock, pid, seen, gone, slots],
        )
        return id

    database.execute("select pg_advisory_lock_shared(%s)", [LOCK])
    yield add
    database.execute("select pg_advisory_unlock_shared(%s)", [LOCK])


def give(database, worker, job, **lease):
    """Let a worker have a job that was fetched."""
    database.execute("update trioboss.live_job set worker = %s where id = %s", [worker, job.id])
    for column, value in lease.items():
        database.execute(f"update trioboss.live_job set {column} = %s where id = %s", [value, job.id])


async def test_why_a_job_that_is_next_does_not_run_yet(q, add_worker):
    add_worker()
    await q.send("q", priority=1)
    await q.send("q")
    id = await q.send("q")
    await q.send("q")
    first = await q.send("q", priority=2)

    assert (await explain(q, id, Reason.QUEUED)).text == "it is due, and 3 jobs of its queue go first"
    assert (await explain(q, first, Reason.QUEUED)).text == "it is due, and it is the next job of its queue"


@pytest.mark.parametrize(
    ("workers", "text"),
    [
        ([{"lock": 1}], "its worker is not connected (last sign at 2029-12-31 23:59:59 UTC): start one"),
        (
            [{"lock": 1}, {"lock": 2, "queue": "*", "seen": "2030-02-02Z"}],
            "its 2 workers are not connected (last sign at 2030-02-02 00:00:00 UTC): start one",
        ),
        (
            [{"lock": 1, "gone": "2030-03-03Z"}],
            "its worker is not connected (last sign at 2030-03-03 00:00:00 UTC): start one",
        ),
        (
            [{"lock": None, "seen": "2020-01-01Z"}],
            "its worker is not connected (last sign at 2020-01-01 00:00:00 UTC): start one",
        ),
        (
            [{"pid": 1}],  # another session has its lock
            "its worker is not connected (last sign at 2029-12-31 23:59:59 UTC): start one",
        ),
        ([{"queue": "other"}], "no worker takes jobs of its queue: start one"),
    ],
    ids=["killed", "all killed", "gone", "pooled", "lock of another session", "of another queue"],
)
async def test_why_a_job_whose_workers_are_not_connected_does_not_run(q, add_worker, workers, text):
    for worker in workers:
        add_worker(**worker)
    id = await q.send("q")

    assert (await explain(q, id, Reason.NO_WORKER)).text == text


@pytest.mark.parametrize("connected", [{}, {"lock": None, "seen": "now"}], ids=["session lock", "pooled"])
async def test_one_connected_worker_is_enough(q, add_worker, connected):
    add_worker(1)
    add_worker(**connected)

    await explain(q, await q.send("q"), Reason.QUEUED)


async def test_why_a_job_does_not_run_while_all_slots_are_busy(q, add_worker, database):
    await q.create_queue("other")
    worker, other = add_worker(slots=1), add_worker(queue="*", slots=2)
    add_worker(1, slots=50)  # it is not connected: its slots do not count
    for queue, owner in (("q", worker), ("q", other), ("other", other)):
        id = await q.send(queue)
        await explain(q, await q.send("q", priority=-1), Reason.QUEUED)
        give(database, owner, await take(q, queue))
    id = await q.send("q")

    text = (await explain(q, id, Reason.BUSY)).text
    assert text == "all 3 slots of its workers are busy, and it is the next job of its queue"


async def test_the_one_slot_of_a_queue_is_busy(q, add_worker, database):
    worker = add_worker(slots=1)
    await q.send("q")
    give(database, worker, await take(q, "q"))
    await q.send("q")
    id = await q.send("q")

    text = (await explain(q, id, Reason.BUSY)).text
    assert text == "the one slot of its workers is busy, and 1 job of its queue goes first"


async def test_why_a_job_runs_names_its_worker_and_says_if_that_is_not_connected(q, add_worker, database):
    connected, killed = add_worker(), add_worker(1)
    await q.send("q")
    job = await take(q, "q")
    give(database, connected, job)
    assert (await explain(q, job.id, Reason.RUNNING)).text.endswith(f", with worker {connected}")
    give(database, killed, job, heartbeat_on="2030-05-05Z")
    text = (await explain(q, job.id, Reason.RUNNING)).text
    assert f"by worker {killed}, which is not connected (last sign at 2030-05-05 00:00:00 UTC): " in text
    unknown = make_id()
    give(database, unknown, job)

    assert f"by worker {unknown}, which is not connected: " in (await explain(q, job.id, Reason.RUNNING)).text


async def test_why_a_retry_waits_says_what_failed(boss, clock):
    await boss.create_queue("q", retry_delay=60, retry_limit=1)
    id = await boss.send("q")
    await boss.fail("q", await boss.fetch("q"), ConnectionError("down"))

    text = (await explain(boss, id, Reason.DEFERRED)).text
    assert text == "it failed with ConnectionError and is tried again at 2030-01-01 12:01:00 UTC"


async def test_why_a_job_behind_a_retry_waits_says_until_when(boss, clock):
    await boss.create_queue("q", policy="key_strict_fifo", retry_delay=60, retry_limit=1)
    first = await boss.send("q", singleton_key="k")
    id = await boss.send("q", singleton_key="k")
    await boss.fail("q", await boss.fetch("q"), ConnectionError("down"))

    explanation = await explain(boss, id, Reason.BEHIND)

    assert explanation.until == clock.now + timedelta(seconds=60)
    assert explanation.behind == first
    assert (
        "which failed with ConnectionError and is tried again at 2030-01-01 12:01:00 UTC" in explanation.text
    )


async def test_why_in_a_queue_that_does_not_exist(boss):
    with pytest.raises(trioboss.UnknownQueue, match="'nowhere'"):
        await boss.why("nowhere", make_id())


async def test_why_refuses_an_invalid_id(offline_boss):
    with pytest.raises(ValueError, match=r"^id: 'x' is not a UUID"):
        await offline_boss.why("q", "x")
