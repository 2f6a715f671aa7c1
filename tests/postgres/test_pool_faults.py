"""The pool when the server is not well."""

import random
from collections import Counter

import psycopg
import pytest
import trio
from postgres_helpers import ADD, ECHO, as_int, bind, is_usable, open_proxy, scalar, until_gone
from psycopg.conninfo import make_conninfo

from trioboss.errors import DatabaseUnavailable, OutcomeUnknown, PoolTimeout
from trioboss.postgres import CloseReason, open_pool
from trioboss.sql import Statement


async def kill(admin, pid):
    await admin.execute("select pg_terminate_backend(%s)", [pid])
    await until_gone(admin, pid)


async def test_connections_that_were_killed_at_rest_are_replaced_unnoticed(server_dsn, admin):
    async with open_pool(server_dsn, size=3) as pool:
        async with pool.connection() as a, pool.connection() as b, pool.connection() as c:
            pids = [connection.info.backend_pid for connection in (a, b, c)]
        for pid in pids:
            await kill(admin, pid)

        with trio.fail_after(5):
            async with pool.connection() as connection:
                assert await is_usable(connection)

        assert pool.statistics().closed == {CloseReason.STALE: 3}


async def test_the_loss_of_a_connection_in_the_middle_of_a_run_is_an_unknown_outcome(server_dsn, admin):
    suicide = Statement("suicide", "select pg_terminate_backend(pg_backend_pid())", ())
    async with open_pool(server_dsn, size=1) as pool:
        with pytest.raises(OutcomeUnknown) as caught:
            await pool.run([[bind(suicide)]])

        assert isinstance(caught.value.__cause__, psycopg.OperationalError)
        assert as_int((await pool.run([[bind(ADD, 1, 2)]]))[0][0]) == 3
        assert pool.statistics().closed == {CloseReason.BROKEN: 1}


async def test_an_unreachable_server_is_retried_until_the_deadline(server_dsn):
    async with open_pool("host=127.0.0.1 port=1 user=me password=sesame", size=1) as pool:
        with trio.fail_after(5), pytest.raises(DatabaseUnavailable) as caught:
            async with pool.connection(timeout=0.3):
                pass

    assert not isinstance(caught.value, PoolTimeout)
    assert isinstance(caught.value.__cause__, psycopg.OperationalError)
    assert "refused" in str(caught.value)
    assert "sesame" not in str(caught.value)
    assert pool.statistics().in_use == 0


async def test_a_server_that_does_not_answer_is_unavailable_at_the_deadline(server_dsn):
    async with open_proxy(server_dsn) as proxy:
        proxy.mute = True
        async with open_pool(proxy.dsn, size=1) as pool:
            with trio.fail_after(5), pytest.raises(DatabaseUnavailable, match="no answer"):
                async with pool.connection(timeout=0.1):
                    pass


async def test_a_server_that_comes_up_within_the_deadline_is_found(server_dsn):
    async with open_proxy(server_dsn) as proxy, open_pool(proxy.dsn, size=1) as pool:
        proxy.refusals = 3
        with trio.fail_after(10):
            async with pool.connection(timeout=9) as connection:
                assert await is_usable(connection)

        assert proxy.accepted == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [({"dbname": "no_such"}, "does not exist"), ({"user": "no_such"}, "does not exist")],
)
async def test_a_refusal_is_not_retried(server_dsn, change, message):
    async with open_pool(make_conninfo(server_dsn, **change), size=1, timeout=60) as pool:
        with trio.fail_after(5), pytest.raises(DatabaseUnavailable, match=message) as caught:
            await pool.run([[bind(ADD, 1, 2)]])

    assert isinstance(caught.value.__cause__, psycopg.OperationalError)


async def test_silent_connections_are_found_by_one_ping_and_all_replaced(server_dsn):
    options = {"size": 3, "ping_after": 0, "ping_timeout": 0.05}
    async with open_proxy(server_dsn) as proxy, open_pool(proxy.dsn, **options) as pool:
        async with pool.connection(), pool.connection(), pool.connection():
            pass
        proxy.mute = True
        with trio.fail_after(5), pytest.raises(DatabaseUnavailable):
            async with pool.connection(timeout=0.3):
                pass

        assert pool.statistics().closed == {CloseReason.STALE: 3}


async def test_a_transaction_left_open_on_a_silent_server_does_not_keep_its_place(server_dsn):
    async with open_proxy(server_dsn) as proxy, open_pool(proxy.dsn, size=1) as pool:
        with trio.fail_after(5):
            async with pool.connection() as connection:
                connection.cancel_grace = 0.05
                await connection.execute("begin")
                proxy.mute = True

        assert connection.closed
        assert pool.statistics().in_use == 0


async def test_random_kills_and_cancellations_leave_the_pool_whole(server_dsn, table):
    counts: Counter[str] = Counter()
    chance = random.Random(7)
    told: dict[int, str] = {}
    numbers = iter(range(1_000_000))
    dsn = make_conninfo(server_dsn, application_name="mortal")

    async def work():
        for _ in range(250):
            number = next(numbers)
            told[number] = "unknown"
            with trio.move_on_after(chance.choice([1, chance.uniform(0, 0.004)])):
                try:
                    tag = str(chance.random())
                    results = await pool.run([[bind(table.insert, number, "a"), bind(ECHO, tag)]])
                    told[number] = "done"
                    assert results[0][1].get_value(0, 0) == tag.encode()
                except OutcomeUnknown:
                    counts["lost"] += 1
                    continue
                counts["done"] += 1
                continue
            told[number] = "cancelled"
            counts["cancelled"] += 1

    async def kill_some():
        while True:
            await table.admin.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'mortal' "
                "and pid %% 3 = %s",
                [chance.randrange(3)],
            )
            await trio.sleep(0.004)

    with trio.fail_after(60):
        async with open_pool(dsn, size=4) as pool:
            async with trio.open_nursery() as killing:
                killing.start_soon(kill_some)
                async with trio.open_nursery() as working:
                    for _ in range(10):
                        working.start_soon(work)
                killing.cancel_scope.cancel()
            statistics = pool.statistics()
            assert statistics.in_use == 0
            assert statistics.waiting == 0
            assert statistics.idle == statistics.opened - sum(statistics.closed.values())
            for _ in range(4):
                assert as_int((await pool.run([[bind(ADD, 1, 2)]]))[0][0]) == 3

    stored = set(await table.rows())
    assert {number for number, outcome in told.items() if outcome == "done"} <= stored
    assert not {number for number, outcome in told.items() if outcome == "cancelled"} & stored
    assert min(counts["done"], counts["cancelled"], counts["lost"]) > 10, counts
    count = "select count(*)::int from pg_stat_activity where application_name = 'mortal'"
    while await scalar(table.admin, count):
        pass
