"""boss.transaction(): the block commits, or an error says that it did not."""

import psycopg
import pytest

import trioboss

FAILS = "SELECT FROM nowhere"


def exists(database, table):
    return database.execute("SELECT to_regclass(%s) IS NOT NULL", [f"public.{table}"]).fetchone()[0]


async def test_a_block_that_ends_after_a_failed_statement_says_that_nothing_is_committed(boss, database):
    async def swallow_an_error():
        async with boss.transaction() as conn:
            await conn.execute("CREATE TABLE public.swallowed ()")
            with pytest.raises(psycopg.errors.UndefinedTable):
                await conn.execute(FAILS)

    with pytest.raises(trioboss.StatementFailed, match="nothing is committed"):
        await swallow_an_error()
    assert not exists(database, "swallowed")


async def test_a_statement_that_fails_in_a_savepoint_leaves_the_rest_to_be_committed(boss, database):
    async with boss.transaction() as conn:
        await conn.execute("CREATE TABLE public.saved ()")
        with pytest.raises(psycopg.errors.UndefinedTable):
            async with conn.transaction():
                await conn.execute(FAILS)

    assert exists(database, "saved")


async def test_a_connection_that_is_lost_before_the_commit_raises_an_error_of_ours(boss, database):
    async def lose_the_connection():
        async with boss.transaction() as conn:
            await conn.execute("CREATE TABLE public.lost ()")
            database.execute("SELECT pg_terminate_backend(%s, 10000)", [conn.info.backend_pid])

    with pytest.raises(trioboss.OutcomeUnknown):
        await lose_the_connection()
    assert not exists(database, "lost")


async def test_a_lock_of_the_session_ends_with_a_transaction_that_is_rolled_back(boss, database):
    async def lock_and_fail():
        async with boss.transaction() as conn:
            await conn.execute("SELECT pg_advisory_lock(4711)")
            raise LookupError

    with pytest.raises(LookupError):
        await lock_and_fail()
    assert database.execute("SELECT pg_try_advisory_lock(4711)").fetchone()[0]


async def test_a_call_in_a_failed_transaction_is_not_worth_repeating(boss):
    async def send_after_an_error():
        async with boss.transaction() as conn:
            with pytest.raises(psycopg.errors.UndefinedTable):
                await conn.execute(FAILS)
            await boss.send("q", conn=conn)

    await boss.create_queue("q")
    with pytest.raises(trioboss.StatementFailed, match="savepoint"):
        await send_after_an_error()


async def test_a_connection_that_is_lost_while_a_block_begins_is_an_outage(boss, monkeypatch):
    async def begin():
        async with boss.transaction():
            pytest.fail("the block has begun")

    ends_the_session = b"SELECT pg_terminate_backend(pg_backend_pid())"
    monkeypatch.setattr("trioboss.api.base._RESET_SETTINGS", ends_the_session)
    with pytest.raises(trioboss.DatabaseUnavailable):
        await begin()


def test_a_connection_that_is_lost_while_a_blocking_block_begins_is_an_outage(sync_boss, monkeypatch):
    def lose(transaction):
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(psycopg.Transaction, "__enter__", lose)
    with pytest.raises(trioboss.DatabaseUnavailable), sync_boss.transaction():
        pytest.fail("the block has begun")


def test_a_blocking_block_says_so_too(sync_boss, database):
    def swallow_an_error():
        with sync_boss.transaction() as conn:
            conn.execute("CREATE TABLE public.blocking ()")
            with pytest.raises(psycopg.errors.UndefinedTable):
                conn.execute(FAILS)

    def lose_the_connection():
        with sync_boss.transaction() as conn:
            conn.execute("CREATE TABLE public.blocking ()")
            database.execute("SELECT pg_terminate_backend(%s, 10000)", [conn.info.backend_pid])

    with pytest.raises(trioboss.StatementFailed, match="nothing is committed"):
        swallow_an_error()
    with pytest.raises(trioboss.OutcomeUnknown):
        lose_the_connection()
    assert not exists(database, "blocking")
    with sync_boss.transaction() as conn:  # and the boss goes on
        assert conn.execute("SELECT 1").fetchone() == (1,)


async def test_a_connection_whose_block_has_ended_is_refused(boss):
    await boss.create_queue("q")
    async with boss.transaction() as conn:
        await boss.send("q", conn=conn)
    with pytest.raises(trioboss.UsageError, match="conn: the block of this connection has ended"):
        await boss.send("q", conn=conn)

    async with boss.transaction() as conn:  # the same one, taken from the pool again
        await boss.send("q", conn=conn)
    assert (await boss.get_queue_stats("q")).queued == 2


CALLS = {
    "send": lambda boss, conn: boss.send("q", conn=conn),
    "insert": lambda boss, conn: boss.insert("q", [{}], conn=conn),
    "publish": lambda boss, conn: boss.publish("e", conn=conn),
    "fetch": lambda boss, conn: boss.fetch("q", conn=conn),
    "pause": lambda boss, conn: boss.pause("q", conn=conn),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", ["psycopg", "trio"])
@pytest.mark.parametrize("state", ["failed", "closed"])
async def test_a_connection_that_cannot_be_used_raises_an_error_of_ours(boss, dsn, call, kind, state):
    await boss.create_queue("q")
    if kind == "psycopg":
        conn = psycopg.connect(dsn)
        with pytest.raises(psycopg.errors.UndefinedTable):
            conn.execute(FAILS)
        if state == "closed":
            conn.close()
    else:
        conn = await trioboss.Connection.connect(dsn)
        with pytest.raises(psycopg.errors.UndefinedTable):
            await conn.execute(FAILS)
        if state == "closed":
            await conn.close()

    with pytest.raises(trioboss.TriobossError) as caught:
        await CALLS[call](boss, conn)
    assert isinstance(caught.value, trioboss.StatementFailed | trioboss.DatabaseUnavailable)
    await conn.close() if kind == "trio" else conn.close()
