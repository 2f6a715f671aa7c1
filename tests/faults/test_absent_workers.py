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


async def test_a_session_with_the_same_lock_does_not_hide_that_a_worker_is_dead(dsn):
    """Every role of the database can read the numbers of locks that are held, and take the same."""
    with psycopg.connect(dsn, autocommit=True) as hostile, trio.fail_after(60):
        hostile.execute("select pg_advisory_lock_shared(42)")
        async with trioboss.open_boss(dsn, migrate=False, presence_grace=2.0) as boss:
            await boss.create_queue("q", retry_limit=5)
            id = await boss.send("q", 1)
            leave_a_dead_worker(dsn, "gone", pid=1)

            async def handler(job):
                return job.attempt

            await boss.work("q", handler)
            job = await boss.wait_for("q", id)

    assert (job.state, job.output) == ("completed", 2)


async def test_the_rows_of_ten_thousand_dead_workers_keep_nobody_from_being_rescued(dsn):
    with trio.fail_after(60):
        async with trioboss.open_boss(dsn, migrate=False, presence_grace=2.0) as boss:
            await boss.create_queue("q", retry_limit=5)
            id = await boss.send("q", 1)
            leave_a_dead_worker(dsn, "gone")
            with psycopg.connect(dsn, autocommit=True) as owner:
                owner.execute(
                    "insert into trioboss.worker (id, boss, name, queue, lock, pid) "
                    "select gen_random_uuid(), gen_random_uuid(), 'x', 'q', number, 1 "
                    "from generate_series(100, 10100) number"
                )

            async def handler(job):
                return job.attempt

            await boss.work("q", handler)
            job = await boss.wait_for("q", id)
            rows = await boss._runtime.adapter.rescue_leases(2.0, 1.0, warnings=False, certain=True)
            assert rows.active == 0

    assert (job.state, job.output) == ("completed", 2)


async def test_all_of_eight_thousand_leases_of_a_killed_worker_are_rescued_in_one_round(dsn):
    with trio.fail_after(120):
        async with trioboss.open_boss(dsn, migrate=False, supervise=False, schedule=False) as boss:
            await boss.create_queue("q", retry_limit=5)
            await boss.insert("q", [{"data": number} for number in range(8000)])
            with psycopg.connect(dsn, autocommit=True) as owner:
                owner.execute(
                    "update trioboss.live_job set readiness = 'active', attempt = 1, started_on = now(), "
                    "expires_on = now() + interval '15 min', worker = gen_random_uuid()"
                )
            rescue = await boss._runtime.adapter.rescue_leases(2.0, 1.0, warnings=False, certain=True)
            assert (sum(len(ids) for _, _, ids in rescue.ended), rescue.active) == (8000, 0)
            assert await boss.get_queue_size("q") == 8000


def leave_a_dead_worker(dsn, name, pid=None):
    """Leave what a killed worker leaves: a row and an active job, but no presence lock."""
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute(
            "insert into trioboss.worker (id, boss, name, queue, lock, pid) "
            "values ('018f0000-0000-7000-8000-00000000dead', gen_random_uuid(), %s, 'q', 42, %s)",
            [name, pid],
        )
        claimed = owner.execute(
            "update trioboss.live_job set readiness = 'active', attempt = 1, started_on = now(), "
            "expires_on = now() + interval '15 min', worker = '018f0000-0000-7000-8000-00000000dead' "
            "where queue = 'q' returning id"
        ).fetchall()
        assert len(claimed) == 1
