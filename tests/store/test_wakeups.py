"""Who sleeps is woken, and not before there is something to see."""

import math
from collections import defaultdict

import psycopg
import pytest
import trio
from store_helpers import hear, until_blocked

from trioboss.errors import DatabaseUnavailable
from trioboss.postgres.connection import Connection
from trioboss.postgres.pool import Pool
from trioboss.runtime import send_batching
from trioboss.store.context import Context


@pytest.fixture
def listener(dsn):
    """A connection that hears the channel."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("listen trioboss")
        yield connection


def fall_asleep(database, queue):
    """Leave the mark by which senders know that a dispatcher of the queue may sleep."""
    database.execute("insert into trioboss.sleeper (name, worker) values (%s, gen_random_uuid())", [queue])


def words(database, listener):
    """All that was said so far."""
    database.execute("notify trioboss, 'so far'")
    return hear(listener, "so far")


async def word_is_out(boss):
    """Wait for what a send leaves behind it: the word goes out after it has returned, on the same connection."""
    async with boss.transaction():
        pass


@pytest.fixture(params=["alone", "in a stream"])
def pace(request, monkeypatch):
    """Whether a send comes after a pause, or on the heels of another."""
    # Nothing is as long as NaN, not even the time since no send at all.
    monkeypatch.setattr(send_batching, "_PAUSE", -math.inf if request.param == "alone" else math.nan)
    return request.param


async def test_who_sleeps_is_woken_by_a_send(boss, database, listener, pace):
    await boss.create_queue("q")
    fall_asleep(database, "q")
    await boss.send("q", 1)
    await boss.send("q", 2)
    await word_is_out(boss)

    assert set(words(database, listener)) == {"q 0"}


async def test_one_alone_wakes_by_its_own_commit(boss, database, listener, monkeypatch):
    monkeypatch.setattr(send_batching, "_PAUSE", -math.inf)
    await boss.create_queue("q")
    await boss.send("q", "known")
    await word_is_out(boss)
    fall_asleep(database, "q")
    monkeypatch.setattr(Context, "wake", lambda *args, **options: pytest.fail("a word of its own"))
    await boss.send("q", 1)

    assert words(database, listener) == ["q 0"]


@pytest.fixture
def inserts_wait(database):
    """Whoever inserts a job waits for lock 7, with the snapshot of its statement already taken."""
    database.execute(
        "create function wait_for_7() returns trigger language plpgsql as "
        "'begin perform pg_advisory_xact_lock(7); return new; end'"
    )
    database.execute(
        "create trigger inserts_wait before insert on trioboss.job_common for each row execute function wait_for_7()"
    )
    yield
    database.execute("drop function wait_for_7() cascade")


async def test_only_one_after_a_pause_and_to_one_queue_at_a_time_is_alone(boss, monkeypatch):
    monkeypatch.setattr(send_batching, "_PAUSE", 60.0)
    verbs, alone = type(boss._store.sending), []
    send_and_wake = verbs.send_and_wake
    monkeypatch.setattr(
        verbs,
        "send_and_wake",
        lambda self, queue, letter: alone.append(queue) or send_and_wake(self, queue, letter),
    )
    for queue in ("a", "b"):
        await boss.create_queue(queue)
        await boss.send(queue, priority=1)  # so that it is known
    await boss.send("a")
    await boss.send("a")
    assert alone == ["a"]

    monkeypatch.setattr(send_batching, "_PAUSE", -math.inf)
    async with trio.open_nursery() as nursery:
        for queue in ("a", "b"):
            nursery.start_soon(boss.send, queue)
    assert len(alone) == 2


async def test_one_alone_that_saw_nobody_asleep_looks_again_after_its_commit(
    boss, database, listener, monkeypatch, inserts_wait
):
    monkeypatch.setattr(send_batching, "_PAUSE", -math.inf)
    await boss.create_queue("q")
    await boss.send("q", "known")
    await word_is_out(boss)

    async with trio.open_nursery() as nursery:
        with psycopg.connect(boss.dsn) as holder:
            holder.execute("select pg_advisory_xact_lock(7)")
            nursery.start_soon(boss.send, "q", "late")
            await until_blocked(database)
            fall_asleep(database, "q")

    await word_is_out(boss)
    assert words(database, listener) == ["q 0"]


async def test_while_another_sender_says_its_word_one_alone_says_its_own_after_the_commit(
    boss, database, listener, monkeypatch
):
    monkeypatch.setattr(send_batching, "_PAUSE", -math.inf)
    await boss.create_queue("q")
    await boss.send("q", "known")
    await word_is_out(boss)
    fall_asleep(database, "q")
    said = []
    wake = Context.wake
    monkeypatch.setattr(Context, "wake", lambda *args, **options: said.append(1) or wake(*args, **options))
    with psycopg.connect(boss.dsn) as other:
        other.execute("select pg_advisory_xact_lock(hashtextextended('trioboss word', 0))")
        await boss.send("q", 1)
        await word_is_out(boss)

    assert said
    assert words(database, listener) == ["q 0"]


@pytest.mark.parametrize("failure", [None, DatabaseUnavailable("lost")], ids=["cancelled", "lost"])
async def test_what_happens_after_its_commit_takes_no_send_back(boss, monkeypatch, failure, caplog):
    monkeypatch.setattr(send_batching, "_PAUSE", -math.inf)
    await boss.create_queue("q")
    await boss.send("q", "known")
    await word_is_out(boss)
    run, id = Pool.run, None

    async def run_and_break(self, transactions, follow_up=(), **options):
        if failure is not None and not transactions:
            raise failure
        results = await run(self, transactions, follow_up, **options)
        scope.cancel()
        return results

    with trio.CancelScope() as scope:
        monkeypatch.setattr(Pool, "run", run_and_break)
        id = await boss.send("q", 1)  # nobody sleeps: it has to look again after its commit
    monkeypatch.setattr(Pool, "run", run)

    assert id is not None
    assert ("wake failed: lost" in caplog.text) == (failure is not None)


async def test_a_job_that_is_due_later_is_announced_with_its_time(boss, database, listener):
    await boss.create_queue("q")
    fall_asleep(database, "q")
    await boss.send_after("q", 1, 60)
    await boss.send_debounced("q", 1, 60)
    await boss.send_debounced("q", 1, 60)
    await word_is_out(boss)

    deferred, *throttled = words(database, listener)
    assert 59 < float(deferred.partition(" ")[2]) <= 60
    assert set(throttled) <= {"q"}


async def test_what_is_due_in_no_time_is_not_announced_as_ready(boss, database, listener):
    await boss.create_queue("q")
    fall_asleep(database, "q")
    await boss.send_after("q", 1, 0.0001)
    await word_is_out(boss)

    assert set(words(database, listener)) == {"q 0.001"}


async def test_where_nobody_sleeps_nothing_is_said(boss, database, listener, pace):
    await boss.create_queue("q")
    await boss.send("q", 1)
    await boss.send("q", 2)

    assert words(database, listener) == []


@pytest.mark.parametrize("options", [{}, {"priority": 1}], ids=["plain", "with an option"])
async def test_the_word_does_not_go_out_before_the_job_is_committed(boss, database, listener, options, pace):
    await boss.create_queue("q")
    await boss.send("q", "known")
    await word_is_out(boss)
    fall_asleep(database, "q")

    async with trio.open_nursery() as nursery:
        with psycopg.connect(boss.dsn) as holder:
            holder.execute("lock table trioboss.job_common in exclusive mode")
            nursery.start_soon(lambda: boss.send("q", "late", **options))
            await until_blocked(database)
            assert words(database, listener) == []

    await word_is_out(boss)
    assert set(words(database, listener)) == {"q 0"}


async def test_ears_listen_before_they_look(boss, monkeypatch):
    names = defaultdict(list)
    run = Connection.run

    async def record(self, transactions, *args):
        names[self] += [step.statement.name for steps in transactions for step in steps]
        return await run(self, transactions, *args)

    monkeypatch.setattr(Connection, "run", record)
    async with boss._runtime._listen_adapter.open_listening_connection([]) as connection:
        await connection.poll([], "token", candidate=False, registrations=[])

    ours = names[connection._conn]
    assert ours.index("listen") < ours.index("look")
