"""Who sleeps is woken, and not before there is something to see."""

from collections import defaultdict

import psycopg
import pytest
import trio
from store_helpers import hear, until_blocked

from trioboss.postgres.connection import Connection


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


async def test_who_sleeps_is_woken_by_a_send(boss, database, listener):
    await boss.create_queue("q")
    fall_asleep(database, "q")
    await boss.send("q", 1)
    await boss.send("q", 2)
    await word_is_out(boss)

    assert set(words(database, listener)) == {"q"}


async def test_where_nobody_sleeps_nothing_is_said(boss, database, listener):
    await boss.create_queue("q")
    await boss.send("q", 1)
    await boss.send("q", 2)

    assert words(database, listener) == []


@pytest.mark.parametrize("options", [{}, {"priority": 1}], ids=["plain", "with an option"])
async def test_the_word_does_not_go_out_before_the_job_is_committed(boss, database, listener, options):
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
    assert set(words(database, listener)) == {"q"}


async def test_ears_listen_before_they_look(boss, monkeypatch):
    names = defaultdict(list)
    run = Connection.run

    async def record(self, transactions, *args):
        names[self] += [step.statement.name for steps in transactions for step in steps]
        return await run(self, transactions, *args)

    monkeypatch.setattr(Connection, "run", record)
    async with boss._runtime.ports.open_ears() as ears:
        await ears.look([], "token", candidate=False)

    ours = names[ears._conn]
    assert ours.index("listen") < ours.index("look")
