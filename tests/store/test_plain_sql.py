"""Jobs made, read and changed by plain SQL, as the documents of pg-boss promise."""

from datetime import timedelta

import psycopg
import pytest
import trio
from psycopg import sql
from store_helpers import fail_for_good, hear, take, take_all

from trioboss import Policy
from trioboss.model.payload import Unreadable

COLUMNS = (
    "id, name, priority, data, state, retry_limit, retry_count, retry_delay, retry_backoff, start_after, started_on, "
    "singleton_key, singleton_on, expire_in, created_on, completed_on, keep_until, output, dead_letter, policy"
)


async def test_a_job_needs_no_more_than_a_name(boss, database):
    await boss.create_queue("q")
    database.execute("insert into trioboss.job (name) values ('q')")

    job = await take(boss, "q")

    assert (job.data, job.priority, job.retry_limit, job.expire_in) == (None, 0, 2, 900.0)
    assert (await boss.complete("q", job)).affected == 1


@pytest.mark.parametrize("partition", [False, True])
@pytest.mark.parametrize("policy", list(Policy))
async def test_a_plain_job_lives_like_any_other(boss, database, policy, partition):
    await boss.create_queue("q", policy=policy, partition=partition)
    database.execute("insert into trioboss.job (name, data, singleton_key) values ('q', '{\"a\": 1}', 'k')")

    assert (await take(boss, "q")).data == {"a": 1}


async def test_many_jobs_are_copied(boss, database):
    await boss.create_queue("q")
    with database.cursor().copy("copy trioboss.job (name, data, priority) from stdin") as copy:
        for i in range(100):
            copy.write_row(("q", str(i), i % 2))

    assert await take_all(boss, "q") == [*range(1, 100, 2), *range(0, 100, 2)]


async def test_a_plain_job_has_the_policy_and_dead_letter_queue_of_its_queue(boss, database):
    await boss.create_queue("letters")
    await boss.create_queue("q", policy="exclusive", dead_letter="letters")
    database.execute("insert into trioboss.job (name, retry_limit) values ('q', 0)")

    assert await boss.send("q") is None
    await boss.fail("q", await boss.fetch("q"))
    assert len(await boss.fetch("letters")) == 1


async def test_what_a_plain_job_does_not_say_its_queue_does(boss, database):
    await boss.create_queue(
        "q", retry_limit=7, retry_delay=3, retry_backoff=True, retry_delay_max=9, expire_in=60, heartbeat=5
    )
    database.execute("insert into trioboss.job (name) values ('q')")
    database.execute("insert into trioboss.job (name, retry_limit, expire_in) values ('q', 1, '2 minutes')")

    inherited, own = await boss.find_jobs("q")

    assert (inherited.retry_limit, inherited.retry_delay, inherited.retry_backoff) == (7, 3.0, True)
    assert (inherited.retry_delay_max, inherited.expire_in, inherited.heartbeat) == (9.0, 60.0, 5.0)
    assert (own.retry_limit, own.expire_in, own.heartbeat) == (1, 120.0, 5.0)


@pytest.mark.parametrize("policy", [Policy.SHORT, Policy.STATELY, Policy.EXCLUSIVE])
async def test_a_policy_holds_whoever_writes(boss, database, policy):
    await boss.create_queue("q", policy=policy)
    await boss.send("q")

    with pytest.raises(psycopg.errors.UniqueViolation):
        database.execute("insert into trioboss.job (name) values ('q')")


async def test_a_queue_that_does_not_exist_is_named(boss, database):
    with pytest.raises(psycopg.errors.ForeignKeyViolation, match="queue nowhere does not exist"):
        database.execute("insert into trioboss.job (name) values ('nowhere')")


async def test_strict_fifo_needs_a_key(boss, database):
    await boss.create_queue("q", policy="key_strict_fifo")

    with pytest.raises(
        psycopg.errors.NotNullViolation, match="key_strict_fifo queues require a singleton_key"
    ):
        database.execute("insert into trioboss.job (name) values ('q')")


async def test_a_deferred_job_waits_for_its_time(boss, database):
    await boss.create_queue("q")
    database.execute("insert into trioboss.job (name, start_after) values ('q', now() + interval '1 hour')")

    assert await boss.fetch("q") == []
    assert (await boss.get_queue_stats("q")).deferred == 1
    assert len(await boss.fetch("q", ignore_start_after=True)) == 1


async def test_a_job_deferred_for_long_is_kept_until_it_can_run(boss, database):
    await boss.create_queue("q", retention=timedelta(days=3))
    database.execute("insert into trioboss.job (name, start_after) values ('q', now() + interval '30 days')")

    (job,) = await boss.find_jobs("q")

    assert job.keep_until == job.start_after + timedelta(days=3)


async def test_a_job_with_a_slot_occupies_it(boss, database, clock):
    await boss.create_queue("q")
    insert = "insert into trioboss.job (name, singleton_on, singleton_key) values ('q', %s, 'k')"
    database.execute(insert, [clock.now.replace(tzinfo=None)])

    assert await boss.send_throttled("q", 1, 60, "k") is None
    assert await boss.send_throttled("q", 1, 60, "other") is not None
    with pytest.raises(psycopg.errors.UniqueViolation):
        database.execute(insert, [clock.now.replace(tzinfo=None)])


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

    assert database.execute("select data, state, output from trioboss.archive").fetchall() == [
        (1, "completed", "out")
    ]
    assert database.execute(
        f"select data from (select {COLUMNS} from trioboss.all_jobs) j order by data"
    ).fetchall() == [
        (1,),
        (2,),
    ]


async def test_the_workers_hear_of_a_plain_job(boss, database, dsn):
    await boss.create_queue("q")
    with psycopg.connect(dsn, autocommit=True) as listener:
        listener.execute("listen trioboss")
        database.execute("insert into trioboss.job (name) values ('q'), ('q')")
        database.execute("notify trioboss, 'over'")

        assert hear(listener, until="over") == ["q"]


HOLDERS = [Policy.SINGLETON, Policy.STATELY, Policy.KEY_STRICT_FIFO]


@pytest.mark.parametrize("policy", HOLDERS)
@pytest.mark.parametrize(
    "change",
    [
        "delete from trioboss.job where id = %s",
        "update trioboss.job set state = 'completed', completed_on = now() where id = %s",
        "update trioboss.job set state = 'cancelled', completed_on = now() where id = %s",
    ],
)
async def test_a_holder_that_is_taken_away_by_hand_frees_its_key(boss, database, policy, change):
    await boss.create_queue("q", policy=policy)
    await boss.send("q", 1, singleton_key="k")
    job = await take(boss, "q")
    await boss.send("q", 2, singleton_key="k")
    assert await boss.fetch("q") == []  # it stands in line now

    database.execute(change, [job.id])

    assert await take_all(boss, "q") == [2]


@pytest.mark.parametrize("policy", HOLDERS)
async def test_a_holder_that_gets_another_key_by_hand_frees_its_own(boss, database, policy):
    await boss.create_queue("q", policy=policy)
    await boss.send("q", 1, singleton_key="k")
    job = await take(boss, "q")
    await boss.send("q", 2, singleton_key="k")
    assert await boss.fetch("q") == []  # it stands in line now

    database.execute("update trioboss.job set singleton_key = 'other' where id = %s", [job.id])

    assert await take_all(boss, "q") == [2]


async def test_a_blocker_that_is_deleted_by_hand_unblocks_its_key(boss, database):
    await boss.create_queue("q", policy="key_strict_fifo")
    await fail_for_good(boss, "q", singleton_key="k")
    await boss.send("q", "behind", singleton_key="k")

    database.execute("delete from trioboss.job where state = 'failed'")

    assert await take_all(boss, "q") == ["behind"]


async def test_a_ready_job_that_is_deleted_by_hand_lets_the_next_one_go(boss, database):
    await boss.create_queue("q", policy="key_strict_fifo")
    first = await boss.send("q", 1, singleton_key="k")
    await boss.send("q", 2, singleton_key="k")
    await boss.pause("q")
    await boss.fetch("q")  # places the first one, and takes nothing

    database.execute("delete from trioboss.job where id = %s", [first])
    await boss.resume_queue("q")

    assert await take_all(boss, "q") == [2]


async def test_who_inserts_into_the_same_key_waits_for_the_commit_before(boss, dsn):
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


async def test_an_open_insert_into_one_queue_is_in_the_way_of_no_other(boss, dsn):
    with psycopg.connect(dsn) as open_transaction:
        # Names made so that the locks would be the same if queues could be told apart from keys no better.
        ((bucket,),) = open_transaction.execute("select hashtextextended('k', 0) & 1023").fetchall()
        open_transaction.rollback()
        await boss.create_queue("place/q", policy="key_strict_fifo")
        await boss.create_queue(f"q/{bucket}", policy="singleton")
        await boss.send(f"q/{bucket}", 1)
        open_transaction.execute("insert into trioboss.job (name, singleton_key) values ('place/q', 'k')")

        with trio.fail_after(5):
            assert await take_all(boss, f"q/{bucket}") == [1]
        open_transaction.rollback()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("start_after", "-infinity"),
        ("start_after", "infinity"),
        ("keep_until", "infinity"),
        ("created_on", "20000-01-01"),
        ("started_on", "-infinity"),
        ("expire_in", "170000 years"),
        ("heartbeat", "170000 years"),
        ("delete_after", "170000 years"),
        ("retry_window", "170000 years"),
        ("retry_jitter", "NaN"),
    ],
)
async def test_what_no_program_could_read_is_refused(boss, database, column, value):
    await boss.create_queue("q")
    insert = sql.SQL("insert into trioboss.job (name, {}) values ('q', %s)").format(sql.Identifier(column))
    with pytest.raises(psycopg.errors.CheckViolation, match="for domain"):
        database.execute(insert, [value])


FREED = "select count(*) from trioboss.freed_key where key = 'k'"


@pytest.mark.parametrize("policy", ["singleton", "stately", "key_strict_fifo"])
async def test_who_waits_for_its_turn_frees_no_key_when_it_goes(boss, database, policy):
    await boss.create_queue("q", policy=policy)
    await boss.send("q", singleton_key="k")
    await take(boss, "q")
    await boss.send("q", singleton_key="k")
    assert database.execute("delete from trioboss.job where state = 'created'").rowcount == 1

    assert database.execute(FREED).fetchone() == (0,)


async def test_in_strict_fifo_who_failed_still_has_its_key(boss, database):
    await boss.create_queue("q", policy="key_strict_fifo", retry_limit=1, retry_delay=60)
    await boss.send("q", singleton_key="k")
    await boss.fail("q", await take(boss, "q"))
    assert database.execute("select state::text from trioboss.job").fetchone() == ("retry",)

    assert database.execute(FREED).fetchone() == (0,)


UNREADABLE = ["('1' || repeat('0', 5000))::jsonb", "(repeat('[', 3000) || repeat(']', 3000))::jsonb"]


@pytest.fixture(params=UNREADABLE)
async def unreadable(request, boss, database):
    """The id of a job between two others whose data Python cannot read."""
    await boss.create_queue("q")
    await boss.send("q", "first")
    ((id,),) = database.execute(
        f"insert into trioboss.job (name, data) values ('q', {request.param}) returning id"
    ).fetchall()
    await boss.send("q", "last")
    return id


@pytest.mark.parametrize("batch_size", [None, 3])
async def test_unreadable_data_fails_its_own_job_and_no_other(boss, unreadable, batch_size):
    seen = []

    async def handler(jobs):
        seen.extend(job.data for job in (jobs if batch_size else [jobs]))
        if "last" in seen:
            through.set()

    through = trio.Event()
    await boss.work("q", handler, batch_size=batch_size)
    with trio.fail_after(30):
        failed = await boss.wait_for("q", unreadable)
        await through.wait()
    assert seen == ["first", "last"]
    assert failed.state == "failed"
    assert failed.output["name"] == "PayloadError"


async def test_unreadable_data_can_be_looked_at(boss, unreadable):
    jobs = await boss.find_jobs("q")
    assert [jobs[0].data, type(jobs[1].data), jobs[2].data] == ["first", Unreadable, "last"]
    assert (await boss.get_job_by_id("q", unreadable)).id == unreadable


async def test_unreadable_data_does_not_stop_who_fetches_by_hand(boss, unreadable):
    assert await take_all(boss, "q") == ["first", "last"]
    job = await boss.get_job_by_id("q", unreadable)
    assert (job.state, job.output["name"]) == ("failed", "PayloadError")
