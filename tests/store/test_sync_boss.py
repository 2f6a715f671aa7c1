"""SyncBoss: the same methods for blocking code."""

import asyncio
import contextlib
import inspect
import threading

import psycopg
import pytest

import trioboss
from trioboss import JobState, Settled
from trioboss.model.ids import make_id

METHODS = [
    *("create_queue", "update_queue", "delete_queue", "get_queue", "get_queues", "get_queue_stats"),
    *("get_queue_size", "get_blocked_keys", "pause", "resume_queue"),
    *("send", "send_after", "send_throttled", "send_debounced", "send_once", "send_singleton", "insert"),
    *("publish", "subscribe", "unsubscribe"),
    *("fetch", "complete", "fail", "touch", "cancel", "resume", "retry", "fetch_completed"),
    *("delete_job", "delete_queued_jobs", "delete_stored_jobs", "delete_all_jobs"),
    *("get_job_by_id", "find_jobs", "why", "is_installed", "schema_version"),
    *("clear_storage", "get_schedules"),
]


@pytest.fixture
def q(sync_boss):
    """A blocking boss with a queue `q`."""
    sync_boss.create_queue("q")
    return sync_boss


def take(boss, queue="q"):
    (job,) = boss.fetch(queue)
    return job


def end_sessions(boss, database):
    """Let the server end the sessions of a boss, and wait until they are gone."""
    database.execute(
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid()"
    )


# -- queues


def test_queues_are_created_changed_read_and_deleted(sync_boss):
    sync_boss.create_queue("q", policy="short")
    sync_boss.update_queue("q", retry_limit=9)

    assert sync_boss.get_queue("q").retry_limit == 9
    assert [queue.name for queue in sync_boss.get_queues()] == ["q"]
    with pytest.raises(trioboss.QueueExists):
        sync_boss.create_queue("q")
    sync_boss.delete_queue("q")
    assert sync_boss.get_queue("q") is None


def test_a_queue_is_paused_and_resumed(q):
    q.send("q")
    q.pause("q")

    assert q.fetch("q") == []
    q.resume_queue("q")
    assert len(q.fetch("q")) == 1


def test_jobs_are_counted(q):
    q.send("q")

    assert q.get_queue_stats("q").queued == q.get_queue_size("q") == 1


def test_blocked_keys_are_listed(sync_boss):
    sync_boss.create_queue("q", policy="key_strict_fifo", retry_limit=0)
    sync_boss.send("q", singleton_key="k")
    sync_boss.fail("q", sync_boss.fetch("q"))

    assert sync_boss.get_blocked_keys("q") == ["k"]


# -- sending


def test_every_way_of_sending_sends(q):
    ids = [
        q.send("q", 0),
        q.send_after("q", 1, 0),
        q.send_throttled("q", 2, 3600),
        q.send_debounced("q", 3, 3600, "k"),
        q.send_once("q", 4, "k"),
        q.send_singleton("q", 5),
    ]

    assert [job.id for job in q.fetch("q", batch_size=9)] == ids
    assert q.send_throttled("q", 2, 3600) is None
    assert q.send_once("q", 4, "k") is None


def test_many_jobs_are_inserted_and_counted_or_named(q):
    assert q.insert("q", [{"data": 1}, trioboss.NewJob(2)]) == 2
    ids = q.insert("q", ({"data": i, "id": make_id()} for i in (3, 4)), return_ids=True)

    jobs = q.fetch("q", batch_size=9)
    assert [job.data for job in jobs] == [1, 2, 3, 4]
    assert [job.id for job in jobs[2:]] == ids


def test_one_bad_job_is_named_and_nothing_is_inserted(q):
    with pytest.raises(trioboss.PayloadError, match=r"^jobs\[1\]\.data: "):
        q.insert("q", [{"data": 1}, {"data": {2}}])
    assert q.get_queue_size("q") == 0


def test_events_are_published_to_subscribers(q):
    q.subscribe("event", "q")
    assert len(q.publish("event", 1)) == 1

    q.unsubscribe("event", "q")
    assert q.publish("event", 2) == []


# -- jobs


def test_a_job_is_completed(q):
    id = q.send("q", 1)
    job = take(q)

    assert q.complete("q", job, "out") == Settled(1, 1, (id,))
    assert q.get_job_by_id("q", id).output == "out"


def test_a_stale_job_settles_nothing(q):
    q.send("q")
    stale = take(q)
    q.fail("q", stale)
    take(q)

    with pytest.raises(trioboss.LeaseLost):
        q.complete("q", stale)
    with pytest.raises(trioboss.LeaseLost):
        q.touch("q", stale)


def test_a_job_goes_through_all_states(q):
    id = q.send("q", retry_limit=0)
    states = [q.get_job_by_id("q", id).state]

    def note(settled):
        assert settled.ids == (id,)
        states.append(q.get_job_by_id("q", id).state)

    note(q.cancel("q", id))
    note(q.resume("q", id))
    note(q.touch("q", take(q)))
    note(q.fail("q", id, ValueError("broken")))
    note(q.retry("q", id))
    take(q)
    note(q.complete("q", id))

    assert states == ["created", "cancelled", "created", "active", "failed", "retry", "completed"]
    assert set(states) == set(JobState)
    assert q.delete_job("q", id).affected == 1
    assert q.get_job_by_id("q", id) is None


def test_a_strict_queue_is_fetched_in_order(sync_boss):
    sync_boss.create_queue("q", policy="key_strict_fifo")
    sync_boss.insert("q", [{"data": i, "singleton_key": "k"} for i in range(3)])
    ran = []
    while jobs := sync_boss.fetch("q", batch_size=5):
        ran += [job.data for job in jobs]
        sync_boss.complete("q", jobs)

    assert ran == [0, 1, 2]


def test_completions_are_fetched(q):
    q.send("q", 1)
    q.complete("q", q.fetch("q"), 2)

    (completion,) = q.fetch_completed("q")
    assert (completion.data["request"]["data"], completion.data["response"]) == (1, 2)


def test_jobs_are_found_and_explained(q):
    id = q.send("q", {"a": 1})

    assert [job.id for job in q.find_jobs("q", data={"a": 1}, state="created")] == [id]
    assert q.why("q", id).reason is trioboss.Reason.NO_WORKER


def test_jobs_are_deleted_by_the_queue(q):
    q.send("q")
    q.complete("q", q.fetch("q"))
    q.send("q")

    assert q.delete_queued_jobs("q") == 1
    assert q.delete_stored_jobs("q") == 1
    q.send("q")
    assert q.delete_all_jobs("q") == 1
    assert q.delete_all_jobs() == 0


def test_every_method_of_the_contract_takes_what_that_of_boss_takes():
    blocking = dict(inspect.getmembers(trioboss.SyncBoss, inspect.isfunction))
    for method in METHODS:
        expected = inspect.signature(getattr(trioboss.Boss, method)).parameters
        assert list(inspect.signature(blocking[method]).parameters) == list(expected), method


# -- transactions


@pytest.mark.parametrize("commit", [True, False])
def test_a_change_on_the_callers_connection_happens_if_it_commits(q, dsn, commit):
    with psycopg.connect(dsn) as conn:
        q.send("q", 1, conn=conn)
        q.insert("q", [{"data": 2}, {"data": 3, "id": make_id()}], conn=conn)
        assert q.fetch("q") == []
        conn.commit() if commit else conn.rollback()

    assert [job.data for job in q.fetch("q", batch_size=9)] == ([1, 2, 3] if commit else [])


def test_a_transaction_of_the_boss_is_apart_from_its_other_calls(q):
    with contextlib.suppress(ZeroDivisionError), q.transaction() as conn:
        q.send("q", "rolled back", conn=conn)
        q.send("q", "sent")
        raise ZeroDivisionError

    assert [job.data for job in q.fetch("q", batch_size=9)] == ["sent"]


def test_transactions_of_the_boss_can_be_nested_and_used_again(q):
    for _ in range(2):
        with q.transaction() as outer, q.transaction() as inner:
            q.send("q", "outer", conn=outer)
            q.send("q", "inner", conn=inner)

    assert len(q.fetch("q", batch_size=9)) == 4
    assert len(q._spare) == 2


def test_an_open_fetch_blocks_no_other_fetch(sync_boss, dsn):
    sync_boss.create_queue("q", policy="singleton")
    sync_boss.insert("q", [{"singleton_key": "a"}, {"singleton_key": "b"}])
    with_timeout = trioboss.SyncBoss(dsn + " options='-c lock_timeout=5s'", migrate=False)
    with with_timeout as other, sync_boss.transaction() as conn:
        assert len(sync_boss.fetch("q", conn=conn)) == 1

        assert len(other.fetch("q")) == 1


def test_an_asyncio_connection_is_refused(q, dsn):
    async def connect():
        connection = await psycopg.AsyncConnection.connect(dsn)
        await connection.close()
        return connection

    with pytest.raises(
        trioboss.UsageError,
        match=r"^conn: psycopg.AsyncConnection: it belongs to asyncio",
    ):
        q.send("q", conn=asyncio.run(connect()))


# -- connections


def test_a_connection_that_the_server_closed_is_replaced(q, database):
    q.send("q", 1)
    with q.transaction():
        pass
    end_sessions(q, database)

    assert q.send("q", 2) is not None
    with q.transaction() as conn:
        assert q.send("q", 3, conn=conn) is not None
    assert [job.data for job in q.fetch("q", batch_size=9)] == [1, 2, 3]


def test_a_connection_that_breaks_under_a_statement_leaves_its_outcome_open(q, dsn):
    with psycopg.connect(dsn) as blocker:
        blocker.execute("lock table trioboss.queue in access exclusive mode")
        (connection,) = q._idle
        backend = connection.info.backend_pid
        with psycopg.connect(dsn, autocommit=True) as nemesis:
            nemesis.execute("set lock_timeout = '10s'")
            nemesis.execute(
                "create or replace procedure public.end_when_blocked(pid int) language plpgsql as $$ begin "
                "while not exists (select from pg_locks l where l.pid = end_when_blocked.pid and not granted) loop "
                "perform pg_sleep(0.01); end loop; perform pg_terminate_backend(pid); end $$"
            )
            thread = threading.Thread(
                target=nemesis.execute, args=("call public.end_when_blocked(%s)", [backend])
            )
            thread.start()
            with pytest.raises(trioboss.OutcomeUnknown, match="connection to Postgres is lost"):
                q.send("q", 1)
            thread.join()
            nemesis.execute("drop procedure public.end_when_blocked")

    assert q.send("q", 2) is not None


def test_a_server_that_is_not_there_is_unavailable():
    with pytest.raises(trioboss.DatabaseUnavailable):
        trioboss.SyncBoss("host=/nowhere dbname=x").__enter__()


def test_a_schema_that_is_not_there_is_out_of_date(dsn):
    with (
        trioboss.SyncBoss(dsn, schema="elsewhere", migrate=False) as boss,
        pytest.raises(trioboss.SchemaOutOfDate, match="'elsewhere' is not installed"),
    ):
        boss.get_queues()


def test_its_repr_shows_no_password(dsn):
    with trioboss.SyncBoss(dsn + " password=s3cret", migrate=False) as boss:
        assert "s3cret" not in repr(boss)
        assert "schema='trioboss'" in repr(boss)


def test_leaving_it_closes_its_connections(dsn, database):
    with trioboss.SyncBoss(dsn, migrate=False) as boss:
        with boss.transaction():
            pass
        boss.get_queues()
        connections = [*boss._idle, *boss._spare]
        assert len(connections) == 2

    assert all(connection.closed for connection in connections)


def test_it_connects_at_the_first_call_where_its_dsn_says(dsn, monkeypatch):
    monkeypatch.setenv("PGDATABASE", "elsewhere")
    boss = trioboss.SyncBoss(dsn)
    boss.create_queue("q")

    assert boss.dsn == dsn
    assert [queue.name for queue in boss.get_queues()] == ["q"]
    boss.close()


def test_it_is_not_used_after_it_was_closed(dsn):
    with trioboss.SyncBoss(dsn) as boss:
        pass

    with pytest.raises(trioboss.UsageError, match="closed"):
        boss.get_queues()
    with pytest.raises(trioboss.UsageError, match="closed"), boss:
        pass


def test_threads_can_share_it(q):
    def work():
        for _ in range(20):
            q.send("q", 1)
            with q.transaction() as conn:
                q.send("q", 2, conn=conn)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert q.get_queue_size("q") == 160


def test_all_jobs_of_all_queues_are_deleted(q):
    q.send("q")
    q.clear_storage()

    assert q.get_queue_size("q") == 0


def test_schedules_are_read(q):
    assert q.get_schedules() == []
