"""The pool with a healthy server: its limit, order, timeouts and maintenance."""

import math

import psycopg
import pytest
import trio
from postgres_helpers import ADD, as_int, bind, is_usable, scalar, until_gone
from psycopg.conninfo import make_conninfo
from trio.testing import wait_all_tasks_blocked

from trioboss.errors import BossClosed, PoolTimeout, UsageError
from trioboss.postgres import CloseReason, open_pool


async def pid(connection):
    return connection.info.backend_pid


async def hold(pool, release, *, task_status):
    async with pool.connection() as connection:
        task_status.started(connection)
        await release.wait()


async def test_connections_are_opened_as_they_are_needed_and_kept(server_dsn):
    async with open_pool(server_dsn, size=3) as pool:
        assert pool.statistics().opened == 0
        for _ in range(5):
            async with pool.connection() as connection:
                assert await is_usable(connection)

        assert pool.statistics().opened == 1
        assert pool.statistics().idle == 1


async def test_a_run_in_a_cancelled_scope_costs_the_pool_no_connection(server_dsn):
    async with open_pool(server_dsn, size=1, ping_after=0.0) as pool:
        await pool.run([[bind(ADD, 1, 2)]])
        with trio.CancelScope() as scope:
            scope.cancel()
            await pool.run([[bind(ADD, 1, 2)]])

        assert scope.cancelled_caught
        assert pool.statistics().idle == 1
        assert not pool.statistics().closed


async def test_a_run_in_a_cancelled_scope_is_cancelled_even_if_all_connections_are_in_use(server_dsn):
    async with open_pool(server_dsn, size=1) as pool, pool.connection():
        with trio.CancelScope() as scope:
            scope.cancel()
            await pool.run([[bind(ADD, 1, 2)]])

        assert scope.cancelled_caught


async def test_a_pool_runs_transactions_on_one_of_its_connections(server_dsn):
    async with open_pool(server_dsn, size=1) as pool:
        ((result,),) = await pool.run([[bind(ADD, 1, 2)]])

        assert as_int(result) == 3


async def test_there_are_never_more_connections_than_the_size(server_dsn, admin):
    busy = peak = 0

    async def work():
        nonlocal busy, peak
        for _ in range(20):
            async with pool.connection() as connection:
                busy += 1
                peak = max(peak, busy)
                await connection.run([[bind(ADD, 1, 2)]])
                busy -= 1

    async with open_pool(make_conninfo(server_dsn, application_name="limit"), size=3) as pool:
        async with trio.open_nursery() as nursery:
            for _ in range(12):
                nursery.start_soon(work)
        count = "select count(*)::int from pg_stat_activity where application_name = 'limit'"
        assert await scalar(admin, count) == 3

    assert peak <= 3


async def test_the_task_that_waits_longest_gets_the_next_connection(server_dsn):
    order = []

    async def work(n):
        async with pool.connection():
            order.append(n)

    async with open_pool(server_dsn, size=1) as pool, trio.open_nursery() as nursery, pool.connection():
        for n in range(5):
            nursery.start_soon(work, n)
            await wait_all_tasks_blocked()
        assert pool.statistics().waiting == 5

    assert order == [0, 1, 2, 3, 4]


async def test_the_connection_used_last_is_used_next(server_dsn):
    async with open_pool(server_dsn, size=2) as pool:
        async with pool.connection() as first, pool.connection() as second:
            pass  # the second is returned first
        async with pool.connection() as third:
            assert third is first
        async with pool.connection() as fourth:
            assert fourth is first
            assert fourth is not second


async def test_waiting_ends_with_a_pool_timeout(server_dsn):
    release = trio.Event()
    async with open_pool(server_dsn, size=2) as pool, trio.open_nursery() as nursery:
        for _ in range(2):
            await nursery.start(hold, pool, release)
        with pytest.raises(PoolTimeout, match=r"within 0\.02 s: all 2 are in use") as caught:
            async with pool.connection(timeout=0.02):
                pass
        release.set()

    assert "by this task" not in str(caught.value)


async def test_a_pool_timeout_names_the_connections_that_the_task_holds_itself(server_dsn):
    release = trio.Event()
    async with open_pool(server_dsn, size=2) as pool, trio.open_nursery() as nursery:
        await nursery.start(hold, pool, release)
        async with pool.connection():
            with pytest.raises(PoolTimeout, match="1 of them by this task"):
                async with pool.connection(timeout=0.02):
                    pass
        release.set()


async def test_a_task_that_holds_all_connections_gets_an_error_at_once(server_dsn):
    async with open_pool(server_dsn, size=1, timeout=math.inf) as pool, pool.connection() as connection:
        with trio.fail_after(60), pytest.raises(PoolTimeout, match="this task holds all the connections"):
            async with pool.connection():
                pass

        assert await is_usable(connection)


async def test_a_task_cancelled_while_it_waits_holds_no_permit(server_dsn):
    async with open_pool(server_dsn, size=1) as pool, trio.open_nursery() as nursery:
        release = trio.Event()
        await nursery.start(hold, pool, release)
        with trio.move_on_after(0.01) as scope:
            async with pool.connection():
                pass
        release.set()
        await wait_all_tasks_blocked()

        assert scope.cancelled_caught
        assert pool.statistics().in_use == 0
        assert pool.statistics().waiting == 0


async def test_a_check_out_in_a_cancelled_scope_opens_no_connection(server_dsn):
    async with open_pool(server_dsn, size=1) as pool:
        with trio.CancelScope() as scope:
            scope.cancel()
            async with pool.connection():
                pass

        assert scope.cancelled_caught
        assert pool.statistics().in_use == 0
        assert pool.statistics().opened == 0


async def test_a_transaction_left_open_is_rolled_back_even_in_a_cancelled_scope(server_dsn, table):
    async with open_pool(server_dsn, size=1) as pool:
        with trio.CancelScope() as scope:
            async with pool.connection() as connection:
                await connection.execute("begin")
                await connection.execute(f"insert into {table.name} values (1)")
                scope.cancel()
                await trio.lowlevel.checkpoint()
        async with pool.connection() as again:
            assert again is connection
            assert await is_usable(again)

    assert await table.rows() == []


async def test_a_connection_returned_without_autocommit_is_reset_to_it(server_dsn, table):
    async with open_pool(server_dsn, size=1) as pool:
        async with pool.connection() as connection:
            await connection.set_autocommit(False)
            await connection.execute(f"insert into {table.name} values (1)")
        async with pool.connection() as again:
            await again.execute(f"insert into {table.name} values (2)")

    assert await table.rows() == [2]


async def test_a_connection_that_the_user_closed_is_replaced(server_dsn):
    async with open_pool(server_dsn, size=1) as pool:
        async with pool.connection() as connection:
            await connection.close()
        async with pool.connection() as again:
            assert await is_usable(again)

        assert pool.statistics().closed == {CloseReason.BROKEN: 1}


async def test_idle_connections_above_the_minimum_are_closed_when_due(server_dsn, admin):
    async with open_pool(server_dsn, size=3, min_size=1, max_idle=0.05) as pool:
        async with pool.connection() as a, pool.connection() as b, pool.connection() as c:
            pids = [await pid(a), await pid(b), await pid(c)]
        for gone in pids[1:]:
            await until_gone(admin, gone)

        assert pool.statistics().idle == 1
        assert pool.statistics().closed == {CloseReason.IDLE: 2}
        async with pool.connection() as kept:
            assert kept is a


async def test_a_connection_does_not_outlive_its_lifetime(server_dsn, admin):
    async with open_pool(server_dsn, size=1, max_lifetime=0.05) as pool:
        async with pool.connection() as connection:
            old = await pid(connection)
        await until_gone(admin, old)
        async with pool.connection() as connection:
            assert await pid(connection) != old
            await trio.sleep_until(trio.current_time() + 0.05)

        # The first while idle, the second at its check-in.
        assert pool.statistics().closed == {CloseReason.EXPIRED: 2}


class Wakeups(trio.abc.Instrument):
    def __init__(self):
        self.count = 0

    def after_io_wait(self, timeout):
        self.count += 1


async def test_an_idle_pool_never_wakes_up(server_dsn):
    wakeups = Wakeups()
    async with open_pool(server_dsn, size=2, min_size=1) as pool:
        await pool.run([[bind(ADD, 1, 2)]])
        await wait_all_tasks_blocked()
        trio.lowlevel.add_instrument(wakeups)
        await trio.sleep(0.3)
        trio.lowlevel.remove_instrument(wakeups)

    # One when the task blocks, and one for the end of the sleep itself.
    assert wakeups.count <= 2


async def test_runs_do_not_wake_the_maintenance_task(server_dsn):
    class MaintenanceSteps(trio.abc.Instrument):
        count = 0

        def before_task_step(self, task):
            self.count += task.name.endswith("Pool._maintain")

    async def work():
        for _ in range(50):
            await pool.run([[bind(ADD, 1, 2)]])

    steps = MaintenanceSteps()
    trio.lowlevel.add_instrument(steps)
    async with open_pool(server_dsn, size=2, min_size=1) as pool:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work)
            nursery.start_soon(work)
        trio.lowlevel.remove_instrument(steps)

    assert steps.count < 10


async def test_a_connection_that_was_idle_for_long_is_pinged_before_its_use(server_dsn):
    async with open_pool(server_dsn, size=1, ping_after=0) as pool:
        for _ in range(3):
            async with pool.connection() as connection:
                assert await is_usable(connection)

        assert pool.statistics().opened == 1


async def test_leaving_the_block_closes_every_connection(server_dsn, admin):
    async with open_pool(server_dsn, size=2) as pool, pool.connection() as a, pool.connection() as b:
        pids = [await pid(a), await pid(b)]

    for gone in pids:
        await until_gone(admin, gone)
    assert pool.statistics().closed == {CloseReason.SHUTDOWN: 2}


async def test_a_connection_in_use_when_the_pool_closes_is_closed_at_its_return(server_dsn):
    release = trio.Event()
    async with trio.open_nursery() as nursery:
        async with open_pool(server_dsn, size=1) as pool:
            connection = await nursery.start(hold, pool, release)
        assert not connection.closed
        release.set()

    assert connection.closed


async def test_a_closed_pool_raises_boss_closed(server_dsn):
    async with open_pool(server_dsn, size=1) as pool:
        pass

    with pytest.raises(BossClosed):
        async with pool.connection():
            pass


async def test_an_error_in_the_block_is_raised_unchanged(server_dsn):
    with pytest.raises(ZeroDivisionError):
        async with open_pool(server_dsn):
            raise ZeroDivisionError


async def test_a_pool_in_a_cancelled_scope_ends(server_dsn):
    with trio.CancelScope() as scope:
        async with open_pool(server_dsn, size=1) as pool:
            await pool.run([[bind(ADD, 1, 2)]])
            scope.cancel()
            await trio.sleep_forever()

    assert scope.cancelled_caught
    assert pool.statistics().idle == 0


async def test_settings_and_pooler_mode_reach_the_sessions(server_dsn):
    async with open_pool(server_dsn, size=1, prepare=False, settings={"work_mem": "7MB"}) as pool:
        await pool.run([[bind(ADD, 1, 2)]])
        async with pool.connection() as connection:
            assert await scalar(connection, "select current_setting('work_mem')") == "7MB"
            assert await scalar(connection, "select count(*)::int from pg_prepared_statements") == 0


@pytest.mark.parametrize("wrong", [{"size": 0}, {"size": 2, "min_size": 3}, {"min_size": -1}])
async def test_an_impossible_size_is_refused(wrong):
    with pytest.raises(UsageError, match="size"):
        async with open_pool("", **wrong):
            pass


async def test_the_repr_of_a_pool_shows_no_password(server_dsn):
    async with open_pool(make_conninfo(server_dsn, password="sesame")) as pool:
        assert "sesame" not in repr(pool)


async def test_an_error_of_a_statement_is_not_translated(server_dsn):
    async with open_pool(server_dsn, size=1) as pool:
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            await pool.run([[bind(ADD, "x", 2)]])

        assert pool.statistics().idle == 1
