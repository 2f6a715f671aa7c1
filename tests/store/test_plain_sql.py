"""Jobs inserted and read by plain SQL, through the views job and all_jobs, as the documents of pg-boss promise."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import trio
from psycopg import sql
from store_helpers import receive, take, take_all

from trioboss import Policy

COLUMNS = (
    "id, name, priority, data, state, retry_limit, retry_count, retry_delay, retry_backoff, start_after, started_on, "
    "singleton_key, singleton_on, expire_in, created_on, completed_on, keep_until, output, dead_letter, policy"
)
ONE_CREATED = [Policy.SHORT, Policy.STATELY, Policy.EXCLUSIVE]


def insert_by(way, database, rows):
    """Insert jobs of queue `q`, given by data and key, through the view: by INSERT or by COPY."""
    if way == "insert":
        statement = "insert into trioboss.job (name, data, singleton_key) values ('q', to_jsonb(%s::int), %s)"
        for row in rows:
            database.execute(statement, row)
        return
    with database.cursor().copy("copy trioboss.job (name, data, singleton_key) from stdin") as copy:
        for data, key in rows:
            copy.write_row(("q", str(data), key))


async def test_a_job_needs_no_more_than_a_name(boss, database):
    await boss.create_queue("q")
    database.execute("insert into trioboss.job (name) values ('q')")

    job = await take(boss, "q")

    assert (job.data, job.priority, job.retry_limit, job.expire_in) == (None, 0, 2, 900.0)
    assert (await boss.complete("q", job)).affected == 1


@pytest.mark.parametrize("way", ["insert", "copy"])
async def test_an_inserted_job_may_have_been_sent_long_ago_and_never_in_the_future(boss, database, way):
    await boss.create_queue("q")
    times = ("2001-02-03T04:05:06Z", "8999-12-30T00:00:00Z")
    if way == "insert":
        for time in times:
            database.execute("insert into trioboss.job (name, created_on) values ('q', %s)", (time,))
    else:
        with database.cursor().copy("copy trioboss.job (name, created_on) from stdin") as copy:
            for time in times:
                copy.write_row(("q", time))

    old, new = await boss.fetch("q", batch_size=2)

    assert old.created_on == datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)
    assert old.started_on > new.created_on > old.created_on


@pytest.mark.parametrize("way", ["insert", "copy"])
@pytest.mark.parametrize("partition", [False, True])
@pytest.mark.parametrize("policy", list(Policy))
async def test_an_inserted_job_runs_under_every_policy(boss, database, policy, partition, way):
    await boss.create_queue("q", policy=policy, partition=partition)
    insert_by(way, database, [(1, "a"), (2, "b")])

    jobs = await boss.fetch("q", batch_size=5)

    assert [job.data for job in jobs] == [1, 2]
    assert (await boss.complete("q", jobs)).affected == 2


@pytest.mark.parametrize("way", ["insert", "copy"])
@pytest.mark.parametrize("policy", list(Policy))
async def test_the_policy_holds_for_inserted_jobs(boss, database, policy, way):
    await boss.create_queue("q", policy=policy)
    insert_by(way, database, [(1, "k")])

    if policy in ONE_CREATED:
        with pytest.raises(psycopg.errors.UniqueViolation):
            insert_by(way, database, [(2, "k")])
        assert await boss.send("q", 2, singleton_key="k") is None
    else:
        insert_by(way, database, [(2, "k")])
        one_at_a_time = policy in (Policy.SINGLETON, Policy.KEY_STRICT_FIFO)
        assert await take_all(boss, "q") == ([1] if one_at_a_time else [1, 2])


@pytest.mark.parametrize("policy", ONE_CREATED)
async def test_an_insert_beside_a_job_that_was_sent_is_refused(boss, database, policy):
    await boss.create_queue("q", policy=policy)
    await boss.send("q")

    with pytest.raises(psycopg.errors.UniqueViolation):
        database.execute("insert into trioboss.job (name) values ('q')")


async def test_copied_jobs_are_claimed_by_priority(boss, database):
    await boss.create_queue("q")
    with database.cursor().copy("copy trioboss.job (name, data, priority) from stdin") as copy:
        for i in range(100):
            copy.write_row(("q", str(i), i % 2))

    assert await take_all(boss, "q") == [*range(1, 100, 2), *range(0, 100, 2)]


@pytest.mark.parametrize("policy", [Policy.SINGLETON, Policy.KEY_STRICT_FIFO])
async def test_a_priority_changed_by_an_update_changes_the_place_in_the_backlog(boss, database, policy):
    await boss.create_queue("q", policy=policy)
    first, second, third = [await boss.send("q", singleton_key="k") for _ in range(3)]
    assert (await take(boss, "q")).id == first
    assert await boss.fetch("q") == []  # their checks are answered
    database.execute("update trioboss.live_job set priority = 5 where id = %s", [third])
    await boss.complete("q", first)

    assert (await take(boss, "q")).id == (third if policy is Policy.SINGLETON else second)


async def test_inserted_jobs_are_found_in_the_order_of_their_insertion(boss, database):
    await boss.create_queue("q")
    database.execute(
        "insert into trioboss.job (name, data) select 'q', to_jsonb(i) from generate_series(1, 50) i"
    )
    await boss.send("q", 51)

    assert [job.data for job in await boss.find_jobs("q")] == list(range(1, 52))


async def test_an_inserted_job_has_the_policy_and_the_dead_letter_queue_of_its_queue(boss, database):
    await boss.create_queue("dead")
    await boss.create_queue("q", policy="exclusive", dead_letter="dead")
    database.execute("insert into trioboss.job (name, retry_limit) values ('q', 0)")

    assert await boss.send("q") is None
    await boss.fail("q", await boss.fetch("q"))
    assert len(await boss.fetch("dead")) == 1


async def test_a_column_that_is_left_out_has_the_value_of_the_queue(boss, database):
    await boss.create_queue(
        "q", retry_limit=7, retry_delay=3, retry_backoff=True, retry_delay_max=9, expire_in=60, heartbeat=5
    )
    database.execute("insert into trioboss.job (name) values ('q')")
    database.execute("insert into trioboss.job (name, retry_limit, expire_in) values ('q', 1, '2 minutes')")

    inherited, own = await boss.find_jobs("q")

    assert (inherited.retry_limit, inherited.retry_delay, inherited.retry_backoff) == (7, 3.0, True)
    assert (inherited.retry_delay_max, inherited.expire_in, inherited.heartbeat) == (9.0, 60.0, 5.0)
    assert (own.retry_limit, own.expire_in, own.heartbeat) == (1, 120.0, 5.0)


OVERRIDES = {
    "retry_limit": 5,
    "retry_delay": 3.0,
    "retry_backoff": True,
    "retry_delay_max": 60.0,
    "retry_jitter": 0.25,
    "retry_multiplier": 3.0,
    "retry_window": timedelta(hours=1),
    "expire_in": timedelta(seconds=30),
    "heartbeat": timedelta(seconds=10),
    "auto_heartbeat": False,
    "max_lease_extensions": 1,
    "retention": timedelta(days=2),
    "delete_after": timedelta(days=1),
    "dead_letter": "dead",
    "priority": -3,
    "singleton_key": "k",
}


async def test_every_option_can_be_inserted(boss, database):
    await boss.create_queue("dead")
    await boss.create_queue("q")
    names = sql.SQL(", ").join(map(sql.Identifier, OVERRIDES))
    insert = sql.SQL("insert into trioboss.job (name, {}) values ('q', {})").format(
        names, sql.SQL(", ").join(sql.Placeholder() * len(OVERRIDES))
    )
    database.execute(insert, list(OVERRIDES.values()))

    row = database.execute(sql.SQL("select {} from trioboss.job").format(names)).fetchone()

    assert dict(zip(OVERRIDES, row, strict=True)) == OVERRIDES


async def test_a_queue_that_does_not_exist_is_named(boss, database):
    with pytest.raises(psycopg.errors.ForeignKeyViolation, match="queue nowhere does not exist"):
        database.execute("insert into trioboss.job (name) values ('nowhere')")


async def test_a_dead_letter_queue_that_does_not_exist_is_named(boss, database):
    await boss.create_queue("q")
    with pytest.raises(psycopg.errors.ForeignKeyViolation, match="dead_letter: queue nowhere does not exist"):
        database.execute("insert into trioboss.job (name, dead_letter) values ('q', 'nowhere')")


async def test_strict_fifo_requires_a_key(boss, database):
    await boss.create_queue("q", policy="key_strict_fifo")

    with pytest.raises(
        psycopg.errors.NotNullViolation, match="key_strict_fifo queues require a singleton_key"
    ):
        database.execute("insert into trioboss.job (name) values ('q')")


@pytest.mark.parametrize("policy", list(Policy))
async def test_a_deferred_job_waits_for_its_time(boss, database, policy):
    await boss.create_queue("q", policy=policy)
    database.execute(
        "insert into trioboss.job (name, singleton_key, start_after) values ('q', 'k', now() + interval '1 hour')"
    )

    assert await boss.fetch("q") == []
    assert (await boss.get_queue_stats("q")).deferred == 1
    assert len(await boss.fetch("q", ignore_start_after=True)) == 1


async def test_a_job_deferred_for_longer_than_its_retention_is_kept_until_it_can_run(boss, database):
    await boss.create_queue("q", retention=timedelta(days=3))
    database.execute("insert into trioboss.job (name, start_after) values ('q', now() + interval '30 days')")

    (job,) = await boss.find_jobs("q")

    assert job.keep_until == job.start_after + timedelta(days=3)


async def test_a_job_with_a_throttle_slot_occupies_it(boss, database, clock):
    await boss.create_queue("q")
    insert = "insert into trioboss.job (name, singleton_on, singleton_key) values ('q', %s, 'k')"
    database.execute(insert, [clock.now.replace(tzinfo=None)])

    assert await boss.send_throttled("q", 1, 60, "k") is None
    assert await boss.send_throttled("q", 1, 60, "other") is not None
    with pytest.raises(psycopg.errors.UniqueViolation):
        database.execute(insert, [clock.now.replace(tzinfo=None)])


@pytest.mark.parametrize("until", ["ended", "started"])
async def test_a_job_can_be_inserted_as_send_once_and_send_singleton_send_it(boss, database, until):
    await boss.create_queue("q")
    insert = "insert into trioboss.job (name, singleton_key, unique_until) values ('q', 'k', %s)"
    database.execute(insert, [until])

    with pytest.raises(psycopg.errors.UniqueViolation):
        database.execute(insert, [until])
    if until == "ended":
        assert await boss.send_once("q", 1, "k") is None
    else:
        assert await boss.send_singleton("q", 1, singleton_key="k") is None


# -- reading


async def test_the_columns_of_the_documents_are_there(boss, database):
    await boss.create_queue("q")
    id = await boss.send("q", 1)

    row = database.execute(f"select {COLUMNS} from trioboss.job").fetchone()

    assert row[:5] == (id, "q", 0, 1, "created")


async def test_ended_jobs_are_in_the_archive_and_all_jobs_in_a_view(boss, database):
    await boss.create_queue("q")
    for data in (1, 2):
        await boss.send("q", data)
    await boss.complete("q", await boss.fetch("q"), "out")

    assert database.execute("select data, outcome, output from trioboss.archive").fetchall() == [
        (1, "completed", "out")
    ]
    assert database.execute("select data from trioboss.job").fetchall() == [(2,)]
    assert database.execute(
        f"select data, state from (select {COLUMNS} from trioboss.all_jobs) j order by data"
    ).fetchall() == [(1, "completed"), (2, "created")]


# -- beside others


async def test_workers_are_notified_of_inserted_jobs(boss, database, dsn):
    await boss.create_queue("q")
    with psycopg.connect(dsn, autocommit=True) as listener:
        listener.execute("listen trioboss")
        database.execute("insert into trioboss.job (name) values ('q'), ('q')")
        database.execute("notify trioboss, 'over'")

        assert receive(listener, until="over") == ["q"]


async def test_an_insert_of_a_strict_fifo_key_waits_for_the_commit_of_the_one_before(boss, dsn):
    await boss.create_queue("q", policy="key_strict_fifo")
    insert = "insert into trioboss.job (name, singleton_key, data) values ('q', %s, %s)"
    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second:
        second.execute("set lock_timeout = '100ms'")
        first.execute(insert, ["k", "1"])

        with pytest.raises(psycopg.errors.LockNotAvailable):
            second.execute(insert, ["k", "2"])
        second.execute(insert, ["another", "3"])
        first.commit()
        second.execute(insert, ["k", "2"])

    assert sorted(await take_all(boss, "q")) == [1, 3]


async def test_an_open_insert_into_one_queue_blocks_no_other_queue(boss, dsn):
    with psycopg.connect(dsn) as open_transaction:
        # Names made so that the locks would be the same if the parts of a lock's name were not told apart.
        ((bucket,),) = open_transaction.execute("select hashtextextended('k', 0) & 1023").fetchall()
        open_transaction.rollback()
        await boss.create_queue("admission/q", policy="key_strict_fifo")
        await boss.create_queue(f"q/{bucket}", policy="singleton")
        await boss.send(f"q/{bucket}", 1)
        open_transaction.execute("insert into trioboss.job (name, singleton_key) values ('admission/q', 'k')")

        with trio.fail_after(60):
            assert await take_all(boss, f"q/{bucket}") == [1]
        open_transaction.rollback()
