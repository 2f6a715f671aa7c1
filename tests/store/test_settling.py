"""complete, fail, touch: one job or many, fenced by their lease, or by plain id."""

from datetime import timedelta
from uuid import UUID

import pytest
import trio
from store_helpers import fail_for_good, open_quiet_boss, take

import trioboss
from trioboss import Settled
from trioboss.model.ids import make_id
from trioboss.model.settle_and_claim import Failure, Settlements
from trioboss.store.settling import plan_settling

TIMEOUT = 60
BY_LEASE = ["complete", "fail", "touch"]
BY_ID = ["cancel", "resume", "retry", "delete_job"]


@pytest.fixture
async def q(boss):
    """A boss with a queue `q`."""
    await boss.create_queue("q")
    return boss


async def take_some(boss, count):
    await boss.insert("q", [{"data": i} for i in range(count)])
    return await boss.fetch("q", batch_size=count)


async def lose(boss, job):
    """Let another caller have the job."""
    await boss.fail("q", job)
    (again,) = await boss.fetch("q")
    assert again.id == job.id
    return again


async def test_a_completed_job_has_its_output_and_its_end(q, clock):
    (job,) = await take_some(q, 1)
    clock.advance(5)

    settled = await q.complete("q", job, {"sum": 1.5})
    done = await q.get_job_by_id("q", job.id)

    assert settled == Settled(1, 1, (job.id,))
    assert (done.state, done.output, done.completed_on) == ("completed", {"sum": 1.5}, clock.now)
    assert done.started_on == clock.now - timedelta(seconds=5)


@pytest.mark.parametrize("output", [None, False, 0, "", [], {"a": [1e16]}])
async def test_output_is_any_json(q, output):
    (job,) = await take_some(q, 1)
    await q.complete("q", job, output)

    assert (await q.get_job_by_id("q", job.id)).output == output


async def test_output_that_cannot_come_back_is_refused_before_any_sql(offline_boss):
    with pytest.raises(trioboss.PayloadError, match=r"^output\.x: set is not JSON"):
        await offline_boss.complete("q", make_id(), {"x": set()})


async def test_a_completed_job_leaves_no_row_where_none_is_wanted(boss, database):
    await boss.create_queue("q", keep_completed=False)
    (job,) = await take_some(boss, 1)

    assert (await boss.complete("q", job)).affected == 1
    assert await boss.get_job_by_id("q", job.id) is None
    assert database.execute("select count(*) from trioboss.all_jobs").fetchone() == (0,)


async def test_a_completed_job_is_kept_if_its_queue_keeps_jobs_since_it_was_cached(boss, dsn):
    await boss.create_queue("q", keep_completed=False)
    (job,) = await take_some(boss, 1)
    async with open_quiet_boss(dsn) as other:
        await other.update_queue("q", keep_completed=True)

    assert (await boss.complete("q", job)).affected == 1
    assert (await boss.get_job_by_id("q", job.id)).state == "completed"


async def test_a_failed_job_leaves_a_row_in_any_case(boss):
    await boss.create_queue("q", keep_completed=False)
    failed = await fail_for_good(boss, "q")

    assert failed.state == "failed"


@pytest.mark.parametrize("method", BY_LEASE)
@pytest.mark.parametrize("as_what", ["job", "id", "text"])
async def test_one_job_is_settled_by_itself_its_id_or_the_text_of_it(q, method, as_what):
    (job,) = await take_some(q, 1)
    target = {"job": job, "id": job.id, "text": str(job.id)}[as_what]

    assert await getattr(q, method)("q", target) == Settled(1, 1, (job.id,))


@pytest.mark.parametrize("method", BY_LEASE)
async def test_many_jobs_are_settled_together(q, method):
    jobs = await take_some(q, 5)

    settled = await getattr(q, method)("q", [jobs[0], jobs[1].id, str(jobs[2].id), *jobs[3:]])

    assert settled == Settled(5, 5, tuple(sorted(job.id for job in jobs)))


@pytest.mark.parametrize("method", [*BY_LEASE, *BY_ID])
async def test_a_call_without_jobs_does_nothing(q, method):
    assert await getattr(q, method)("q", []) == Settled(0, 0, ())


@pytest.mark.parametrize("method", BY_LEASE)
async def test_a_stale_job_settles_nothing(q, method):
    (job,) = await take_some(q, 1)
    again = await lose(q, job)

    with pytest.raises(trioboss.LeaseLost) as lost:
        await getattr(q, method)("q", job)
    assert (lost.value.queue, lost.value.ids) == ("q", (job.id,))
    assert await q.get_job_by_id("q", job.id) == again


@pytest.mark.parametrize("method", BY_LEASE)
@pytest.mark.parametrize("order", [1, -1])
async def test_of_two_attempts_of_one_job_the_later_is_settled_and_the_stale_one_named(q, method, order):
    (job,) = await take_some(q, 1)
    again = await lose(q, job)

    with pytest.raises(trioboss.LeaseLost) as lost:
        await getattr(q, method)("q", [job, again][::order])
    assert lost.value.ids == (job.id,)
    assert await q.get_job_by_id("q", job.id) != again


@pytest.mark.parametrize("method", BY_LEASE)
async def test_a_job_that_was_claimed_again_in_the_same_instant_settles_nothing(q, clock, method):
    (job,) = await take_some(q, 1)
    again = await lose(q, job)
    assert again.started_on == job.started_on

    with pytest.raises(trioboss.LeaseLost):
        await getattr(q, method)("q", job)


@pytest.mark.parametrize("method", BY_LEASE)
async def test_an_attempt_number_that_was_issued_twice_is_no_lease(q, database, method):
    (job,) = await take_some(q, 1)
    # As after a crash of the server that lost a claim: its number is issued again, at another time.
    database.execute(
        "update trioboss.live_job set readiness = 'ready', attempt = 0, started_on = null where id = %s",
        [job.id],
    )
    again = await take(q, "q")
    assert again.attempt == job.attempt

    with pytest.raises(trioboss.LeaseLost):
        await getattr(q, method)("q", job)


@pytest.mark.parametrize("method", BY_LEASE)
async def test_a_stale_job_is_named_and_the_others_are_settled(q, method):
    kept, lost_job, also_kept = await take_some(q, 3)
    again = await lose(q, lost_job)

    with pytest.raises(trioboss.LeaseLost) as lost:
        await getattr(q, method)("q", [kept, lost_job, also_kept.id])
    assert lost.value.ids == (lost_job.id,)
    assert await q.get_job_by_id("q", lost_job.id) == again
    assert await q.get_job_by_id("q", kept.id) != kept
    assert await q.get_job_by_id("q", also_kept.id) != also_kept


@pytest.mark.parametrize("method", BY_LEASE)
@pytest.mark.parametrize("end", ["complete", "cancel", "delete_job"])
async def test_a_job_that_has_ended_settles_nothing(q, method, end):
    (job,) = await take_some(q, 1)
    await getattr(q, end)("q", job.id)

    with pytest.raises(trioboss.LeaseLost):
        await getattr(q, method)("q", job)


@pytest.mark.parametrize("method", BY_LEASE)
async def test_a_job_that_was_read_before_it_was_claimed_settles_nothing(q, method):
    id = await q.send("q")
    job = await q.get_job_by_id("q", id)
    await q.fetch("q")

    with pytest.raises(trioboss.LeaseLost):
        await getattr(q, method)("q", job)


@pytest.mark.parametrize("method", BY_LEASE)
async def test_a_plain_id_settles_whichever_attempt_is_active(q, method):
    (job,) = await take_some(q, 1)
    await lose(q, job)

    assert (await getattr(q, method)("q", job.id)).affected == 1


@pytest.mark.parametrize("method", BY_LEASE)
async def test_a_stale_job_is_stale_even_if_its_id_is_given_too(q, method):
    (job,) = await take_some(q, 1)
    again = await lose(q, job)

    with pytest.raises(trioboss.LeaseLost):
        await getattr(q, method)("q", [job, job.id])
    assert await q.get_job_by_id("q", job.id) == again


@pytest.mark.parametrize("method", BY_LEASE)
async def test_a_plain_id_of_a_job_that_is_not_active_is_not_found(q, method):
    id = await q.send("q")

    with pytest.raises(trioboss.JobNotFound, match=f"no active job {id} in queue 'q'") as missing:
        await getattr(q, method)("q", id)
    assert missing.value.ids == (id,)


@pytest.mark.parametrize("method", BY_LEASE)
async def test_of_many_plain_ids_those_that_matched_are_settled(q, method):
    (job,) = await take_some(q, 1)

    assert await getattr(q, method)("q", [job.id, make_id()]) == Settled(2, 1, (job.id,))


@pytest.mark.parametrize("method", [*BY_LEASE, *BY_ID])
async def test_a_job_of_another_queue_is_refused_before_any_sql(boss, method):
    await boss.create_queue("mine")
    await boss.create_queue("theirs")
    await boss.send("theirs")
    job = await take(boss, "theirs")

    with pytest.raises(trioboss.UsageError, match=f"queue: job {job.id} is of queue 'theirs', not 'mine'"):
        await getattr(boss, method)("mine", [job])


@pytest.mark.parametrize("method", [*BY_LEASE, *BY_ID])
async def test_an_id_of_another_queue_is_not_found(boss, method):
    await boss.create_queue("mine")
    await boss.create_queue("theirs")
    id = await boss.send("theirs")

    with pytest.raises(trioboss.JobNotFound):
        await getattr(boss, method)("mine", id)


@pytest.mark.parametrize("method", [*BY_LEASE, *BY_ID])
async def test_a_queue_that_does_not_exist_is_named(boss, method):
    with pytest.raises(trioboss.UnknownQueue, match="'nowhere'"):
        await getattr(boss, method)("nowhere", make_id())


@pytest.mark.parametrize("method", [*BY_LEASE, *BY_ID])
async def test_an_invalid_id_is_refused_before_any_sql(offline_boss, method):
    with pytest.raises(ValueError, match=r"^id: 'x' is not a UUID"):
        await getattr(offline_boss, method)("q", ["x"])


async def test_a_job_of_a_queue_that_was_deleted_lost_its_lease(q, dsn):
    (job,) = await take_some(q, 1)
    async with open_quiet_boss(dsn) as other:
        await other.delete_queue("q")

    with pytest.raises(trioboss.LeaseLost):
        await q.complete("q", job)


async def test_a_touch_renews_the_lease_and_nothing_else(q, clock):
    (job,) = await take_some(q, 1)
    clock.advance(30)

    await q.touch("q", job)
    touched = await q.get_job_by_id("q", job.id)

    assert touched.heartbeat_on == clock.now
    assert (touched.attempt, touched.started_on) == (job.attempt, job.started_on)
    assert (await q.complete("q", job)).affected == 1


async def test_a_renewal_does_not_wait_for_rows_that_a_transaction_has_locked(q):
    """One statement renews all leases of a worker: if it waited for one of them, the others would be lost."""
    jobs = await take_some(q, 2)
    async with q.transaction() as conn:
        await q.complete("q", jobs[0], conn=conn)
        with trio.fail_after(TIMEOUT):
            renewed = await q._execute(q._store.leases.renew({"q": [job.lease for job in jobs]}))

    assert renewed == {jobs[0].id: False, jobs[1].id: True}


@pytest.mark.parametrize("name", ["null", "NULL", "a/b-c.d"])
async def test_a_touch_reaches_queues_of_any_name(boss, name):
    await boss.create_queue(name)
    await boss.send(name)

    assert (await boss.touch(name, await boss.fetch(name))).affected == 1


async def test_a_failed_job_keeps_the_error(q):
    failed = await fail_for_good(q, "q")

    assert failed.output == {"message": "broken"}
    assert failed.completed_on is not None


@pytest.mark.parametrize(
    "error",
    [
        ValueError("plain"),
        ValueError("nul \0, half a pair \ud83d, and long " + "x" * 100_000),
        ExceptionGroup("several", [ValueError("a\0"), KeyError("b")]),
    ],
)
async def test_any_exception_is_kept_with_its_name_message_and_stack(q, error):
    (job,) = await take_some(q, 1)
    try:
        raise error
    except Exception as caught:
        await q.fail("q", job, caught)

    output = (await q.get_job_by_id("q", job.id)).output
    assert output["name"] == type(error).__name__
    assert output["message"].startswith(str(error)[:3])
    assert "Traceback" in output["stack"]


@pytest.mark.parametrize(
    ("error", "kept"), [(None, None), ("text", {"message": "text"}), ({"a": [1]}, {"a": [1]})]
)
async def test_an_error_may_be_text_or_json(q, error, kept):
    (job,) = await take_some(q, 1)
    await q.fail("q", job, error)

    assert (await q.get_job_by_id("q", job.id)).output == kept


async def test_an_error_that_is_no_json_is_refused_before_any_sql(offline_boss):
    with pytest.raises(trioboss.PayloadError, match=r"^error\[0\]: "):
        await offline_boss.fail("q", make_id(), [float("nan")])


@pytest.mark.parametrize("method", BY_LEASE)
async def test_a_job_given_twice_is_one_job(q, method):
    (job,) = await take_some(q, 1)

    assert await getattr(q, method)("q", [job, job]) == Settled(1, 1, (job.id,))


async def test_the_ids_of_settled_jobs_are_uuids(q):
    (job,) = await take_some(q, 1)

    assert all(isinstance(id, UUID) for id in (await q.complete("q", str(job.id))).ids)


# -- many


@pytest.mark.parametrize("policy", ["standard", "key_strict_fifo"])
async def test_many_attempts_are_failed_and_given_back_in_pieces(boss, policy):
    """One statement for all of them compares each with each."""
    await boss.create_queue("q", policy=policy, retry_limit=1)
    await boss.insert("q", [{"data": i, "singleton_key": str(i)} for i in range(250)])
    context, settling = boss._store.context, boss._store.settling

    jobs = await boss.fetch("q", batch_size=250)
    released = Settlements(released=[job.lease for job in jobs])
    assert len(plan_settling(context, context.cached("q"), released).statements) == 3
    await boss._execute(settling.release_leases("q", released.released))
    assert (await boss.get_queue_stats("q")).retries == 250

    jobs = await boss.fetch("q", batch_size=250)
    failures = [(job.lease, Failure(None, outcome="lost")) for job in jobs]
    assert len(plan_settling(context, context.cached("q"), Settlements(failed=failures)).statements) == 6
    assert len(await boss._execute(settling.fail_leases("q", failures))) == 250

    settled = await boss.fail("q", await boss.fetch("q", batch_size=250), "by call")
    assert (settled.affected, set(settled.ids)) == (250, {job.id for job in jobs})
    assert {job.state for job in await boss.find_jobs("q", limit=300)} == {"failed"}
