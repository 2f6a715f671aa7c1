"""Idle dispatchers are notified of jobs, and not before the jobs are visible."""

import math
from collections import defaultdict

import psycopg
import pytest
import trio
from store_helpers import receive, until_blocked

from trioboss.errors import DatabaseUnavailable
from trioboss.postgres.connection import Connection
from trioboss.postgres.pool import Pool
from trioboss.runtime import send_batching
from trioboss.store.context import Context


@pytest.fixture
def listener(dsn):
    """A connection that listens on the channel."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("listen trioboss")
        yield connection


def set_idle_marker(database, queue):
    """Set the marker by which senders see that a dispatcher of the queue may be idle."""
    database.execute(
        "insert into trioboss.idle_dispatcher (queue, worker) values (%s, gen_random_uuid())", [queue]
    )


def received(database, listener):
    """The payloads of all notifications so far."""
    database.execute("notify trioboss, 'so far'")
    return receive(listener, "so far")


async def until_notified(boss):
    """Wait for the follow-up of a send: it notifies after the send has returned, on the same connection."""
    async with boss.transaction():
        pass


@pytest.fixture(params=["alone", "in a stream"])
def pace(request, monkeypatch):
    """Whether a send comes after a pause, or right after another."""
    # Nothing is as long as NaN, not even the time since no send at all.
    monkeypatch.setattr(send_batching, "_PAUSE", -math.inf if request.param == "alone" else math.nan)
    return request.param


async def test_an_idle_dispatcher_is_notified_of_a_send(boss, database, listener, pace):
    await boss.create_queue("q")
    set_idle_marker(database, "q")
    await boss.send("q", 1)
    await boss.send("q", 2)
    await until_notified(boss)

    assert set(received(database, listener)) == {"q 0"}


async def test_a_send_that_is_alone_notifies_by_its_own_commit(boss, database, listener, monkeypatch):
    monkeypatch.setattr(send_batching, "_PAUSE", -math.inf)
    await boss.create_queue("q")
    await boss.send("q", "cached")
    await until_notified(boss)
    set_idle_marker(database, "q")
    monkeypatch.setattr(Context, "notify_idle", lambda *args, **options: pytest.fail("a second statement"))
    await boss.send("q", 1)

    assert received(database, listener) == ["q 0"]


@pytest.fixture
def inserts_wait(database):
    """Every insert of a job waits for lock 7, with the snapshot of its statement already taken."""
    database.execute(
        "create function wait_for_7() returns trigger language plpgsql as "
        "'begin perform pg_advisory_xact_lock(7); return new; end'"
    )
    database.execute(
        "create trigger inserts_wait before insert on trioboss.live_job_common for each row "
        "execute function wait_for_7()"
    )
    yield
    database.execute("drop function wait_for_7() cascade")


async def test_a_send_is_alone_only_after_a_pause_and_if_no_other_is_under_way(boss, monkeypatch):
    monkeypatch.setattr(send_batching, "_PAUSE", 60.0)
    operations, alone = type(boss._store.sending), []
    send_and_notify = operations.send_and_notify
    monkeypatch.setattr(
        operations,
        "send_and_notify",
        lambda self, queue, send: alone.append(queue) or send_and_notify(self, queue, send),
    )
    for queue in ("a", "b"):
        await boss.create_queue(queue)
        await boss.send(queue, priority=1)  # so that the queue is cached
    await boss.send("a")
    await boss.send("a")
    assert alone == ["a"]

    monkeypatch.setattr(send_batching, "_PAUSE", -math.inf)
    async with trio.open_nursery() as nursery:
        for queue in ("a", "b"):
            nursery.start_soon(boss.send, queue)
    assert len(alone) == 2


async def test_a_dispatcher_that_becomes_idle_during_a_send_is_notified_after_its_commit(
    boss, database, listener, monkeypatch, inserts_wait
):
    monkeypatch.setattr(send_batching, "_PAUSE", -math.inf)
    await boss.create_queue("q")
    await boss.send("q", "cached")
    await until_notified(boss)

    async with trio.open_nursery() as nursery:
        with psycopg.connect(boss.dsn) as lock_holder:
            lock_holder.execute("select pg_advisory_xact_lock(7)")
            nursery.start_soon(boss.send, "q", "late")
            await until_blocked(database)
            set_idle_marker(database, "q")

    await until_notified(boss)
    assert received(database, listener) == ["q 0"]


async def test_beside_another_sender_that_notifies_a_send_notifies_after_its_commit(
    boss, database, listener, monkeypatch
):
    monkeypatch.setattr(send_batching, "_PAUSE", -math.inf)
    await boss.create_queue("q")
    await boss.send("q", "cached")
    await until_notified(boss)
    set_idle_marker(database, "q")
    notified = []
    notify_idle = Context.notify_idle
    monkeypatch.setattr(
        Context, "notify_idle", lambda *args, **options: notified.append(1) or notify_idle(*args, **options)
    )
    with psycopg.connect(boss.dsn) as other:
        other.execute(
            "select pg_advisory_xact_lock(trioboss.lock_number('notify', seed)) from trioboss.lock_seed"
        )
        await boss.send("q", 1)
        await until_notified(boss)

    assert notified
    assert received(database, listener) == ["q 0"]


@pytest.mark.parametrize("failure", [None, DatabaseUnavailable("lost")], ids=["cancelled", "lost"])
async def test_a_send_that_is_committed_succeeds_even_if_its_notification_fails(
    boss, monkeypatch, failure, caplog
):
    monkeypatch.setattr(send_batching, "_PAUSE", -math.inf)
    await boss.create_queue("q")
    await boss.send("q", "cached")
    await until_notified(boss)
    run, id = Pool.run, None

    async def run_and_break(self, transactions, follow_up=(), **options):
        if failure is not None and not transactions:
            raise failure
        results = await run(self, transactions, follow_up, **options)
        scope.cancel()
        return results

    with trio.CancelScope() as scope:
        monkeypatch.setattr(Pool, "run", run_and_break)
        id = await boss.send("q", 1)  # without an idle marker: it has to look for one after its commit
    monkeypatch.setattr(Pool, "run", run)

    assert id is not None
    assert ("notify_idle failed: lost" in caplog.text) == (failure is not None)


async def test_the_notification_of_a_deferred_job_has_its_time(boss, database, listener):
    await boss.create_queue("q")
    set_idle_marker(database, "q")
    await boss.send_after("q", 1, 60)
    await boss.send_debounced("q", 1, 60)
    await boss.send_debounced("q", 1, 60)
    await until_notified(boss)

    deferred, *throttled = received(database, listener)
    assert 59 < float(deferred.partition(" ")[2]) <= 60
    assert set(throttled) <= {"q"}


async def test_the_notification_of_a_deferred_job_never_says_that_it_is_ready(boss, database, listener):
    await boss.create_queue("q")
    set_idle_marker(database, "q")
    await boss.send_after("q", 1, 0.0001)
    await until_notified(boss)

    assert set(received(database, listener)) == {"q 0.001"}


async def test_without_an_idle_dispatcher_there_is_no_notification(boss, database, listener, pace):
    await boss.create_queue("q")
    await boss.send("q", 1)
    await boss.send("q", 2)
    await until_notified(boss)

    assert received(database, listener) == []


@pytest.mark.parametrize("options", [{}, {"priority": 1}], ids=["plain", "with an option"])
async def test_there_is_no_notification_before_the_job_is_committed(boss, database, listener, options, pace):
    await boss.create_queue("q")
    await boss.send("q", "cached")
    await until_notified(boss)
    set_idle_marker(database, "q")

    async with trio.open_nursery() as nursery:
        with psycopg.connect(boss.dsn) as lock_holder:
            lock_holder.execute("lock table trioboss.live_job_common in exclusive mode")
            nursery.start_soon(lambda: boss.send("q", "late", **options))
            await until_blocked(database)
            assert received(database, listener) == []

    await until_notified(boss)
    assert set(received(database, listener)) == {"q 0"}


async def test_a_listening_connection_listens_before_it_polls(boss, monkeypatch):
    names = defaultdict(list)
    run = Connection.run

    async def record(self, transactions, *args):
        names[self] += [bound.statement.name for transaction in transactions for bound in transaction]
        return await run(self, transactions, *args)

    monkeypatch.setattr(Connection, "run", record)
    async with boss._runtime._listen_adapter.open_listening_connection(list) as connection:
        await connection.poll([], "token", candidate=False, registrations=[])

    ours = names[connection._conn]
    assert ours.index("listen") < ours.index("poll")
