"""Which workers are dead: by name, without a row, and with a session that outlives them."""

import psycopg
import trio

import trioboss
from trioboss.events import JobsRecovered
from trioboss.testing import record


async def test_A10_a_worker_of_the_same_name_is_not_taken_for_the_dead_one(dsn):
    """The job of the dead worker is rescued although another worker of the same name is alive."""
    with trio.fail_after(60):
        async with trioboss.open_boss(dsn, migrate=False, presence_grace=2.0, worker_name="same") as boss:
            await boss.create_queue("q", retry_limit=5)
            await boss.send("q", 1)
            leave_a_dead_worker(dsn, "same")

            async def handler(job):
                return job.attempt

            await boss.work("q", handler)
            async with record(boss.events()) as recorder:
                (recovered,) = await recorder.wait_for(JobsRecovered)
            job = await boss.wait_for("q", recovered.ids[0])

    assert (job.state, job.output) == ("completed", 2)


async def test_A11_a_job_whose_worker_has_no_row_is_rescued(dsn):
    with trio.fail_after(60):
        async with trioboss.open_boss(dsn, migrate=False, presence_grace=2.0) as boss:
            await boss.create_queue("q", retry_limit=5)
            id = await boss.send("q", 1)
            leave_a_dead_worker(dsn, "gone")
            with psycopg.connect(dsn, autocommit=True) as owner:
                owner.execute("delete from trioboss.worker")

            async def handler(job):
                return job.attempt

            await boss.work("q", handler)
            job = await boss.wait_for("q", id)

    assert (job.state, job.output) == ("completed", 2)


async def test_A12_a_leader_whose_session_outlives_it_leads_until_its_term_ends(dsn):
    """A proxy may keep a connection open whose client is gone, and the server cannot know."""
    with psycopg.connect(dsn, autocommit=True) as session, trio.fail_after(60):
        session.execute(
            "select pg_advisory_lock(trioboss.lock_number('leader', seed)) from trioboss.lock_seed"
        )
        session.execute(
            "insert into trioboss.leader values (true, gen_random_uuid(), now() + interval '2 s')"
        )
        async with trioboss.open_boss(dsn, migrate=False, presence_grace=2.0) as boss:
            await boss.create_queue("q", retry_limit=5)
            id = await boss.send("q", 1)
            leave_a_dead_worker(dsn, "gone")

            async def handler(job):
                return job.attempt

            await boss.work("q", handler)
            # A running job makes the boss check the leader; an idle boss does so only at its next safety poll.
            await boss.send("q", 2)
            job = await boss.wait_for("q", id)

    assert (job.state, job.output) == ("completed", 2)


def leave_a_dead_worker(dsn, name):
    """Leave what a killed worker leaves: a row and an active job, but no presence lock."""
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute(
            "insert into trioboss.worker (id, boss, name, queue, lock) "
            "values ('018f0000-0000-7000-8000-00000000dead', gen_random_uuid(), %s, 'q', 42)",
            [name],
        )
        claimed = owner.execute(
            "update trioboss.live_job set readiness = 'active', attempt = 1, started_on = now(), "
            "expires_on = now() + interval '15 min', worker = '018f0000-0000-7000-8000-00000000dead' "
            "where queue = 'q' returning id"
        ).fetchall()
        assert len(claimed) == 1
