"""The pool when connections are lost or the server cannot be reached."""

import itertools
import math
import os
import random
import signal
from collections import Counter
from contextlib import suppress

import attrs
import psycopg
import pytest
import trio
from postgres_helpers import ADD, ECHO, as_int, bind, is_usable, open_proxy, scalar, until_gone
from psycopg.conninfo import make_conninfo
from trio.testing import wait_all_tasks_blocked

from trioboss.errors import DatabaseUnavailable, OutcomeUnknown, ServerDown
from trioboss.postgres import CloseReason, open_pool
from trioboss.sql import Statement


async def terminate(admin, pid):
    await admin.execute("select pg_terminate_backend(%s)", [pid])
    await until_gone(admin, pid)


async def test_idle_connections_that_were_terminated_are_replaced_without_an_error(server_dsn, admin):
    async with open_pool(server_dsn, size=3) as pool:
        async with pool.connection() as a, pool.connection() as b, pool.connection() as c:
            pids = [connection.info.backend_pid for connection in (a, b, c)]
        for pid in pids:
            await terminate(admin, pid)

        with trio.fail_after(60):
            async with pool.connection() as connection:
                assert await is_usable(connection)

        assert pool.statistics().closed == {CloseReason.STALE: 3}


async def test_the_loss_of_a_connection_during_a_run_leaves_the_outcome_unknown(server_dsn, admin):
    terminate_self = Statement("terminate_self", "select pg_terminate_backend(pg_backend_pid())", ())
    async with open_pool(server_dsn, size=1) as pool:
        with pytest.raises(OutcomeUnknown) as caught:
            await pool.run([[bind(terminate_self)]])

        assert isinstance(caught.value.__cause__, psycopg.OperationalError)
        assert as_int((await pool.run([[bind(ADD, 1, 2)]]))[0][0]) == 3
        assert pool.statistics().closed == {CloseReason.BROKEN: 1}


async def test_a_termination_that_cannot_be_seen_yet_leaves_the_outcome_unknown(server_dsn, admin):
    # pg_terminate_backend only sends a signal. Until the backend has acted on it, the connection looks healthy, and a
    # run on it may or may not have been executed when the connection ends.
    async with open_pool(server_dsn, size=1) as pool:
        async with pool.connection() as connection:
            pid = connection.info.backend_pid
        os.kill(pid, signal.SIGSTOP)
        try:
            await admin.execute("select pg_terminate_backend(%s)", [pid])
            async with trio.open_nursery() as nursery:
                nursery.start_soon(raises_outcome_unknown, pool)
                await wait_all_tasks_blocked()
                assert pool.statistics().in_use == 1
                os.kill(pid, signal.SIGCONT)
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

        assert pool.statistics().closed == {CloseReason.BROKEN: 1}


async def raises_outcome_unknown(pool):
    with pytest.raises(OutcomeUnknown):
        await pool.run([[bind(ADD, 1, 2)]])


async def test_an_unreachable_server_is_retried_until_the_deadline(server_dsn):
    async with open_pool("host=127.0.0.1 port=1 user=me password=sesame", size=1) as pool:
        with trio.fail_after(60), pytest.raises(ServerDown) as caught:
            async with pool.connection(timeout=0.3):
                pass

    assert isinstance(caught.value.__cause__, psycopg.OperationalError)
    assert "refused" in str(caught.value)
    assert "sesame" not in str(caught.value)
    assert pool.statistics().in_use == 0


async def test_a_server_that_does_not_answer_is_unavailable_at_the_deadline(server_dsn):
    async with open_proxy(server_dsn) as proxy:
        proxy.silent = True
        async with open_pool(proxy.dsn, size=1) as pool:
            with trio.fail_after(60), pytest.raises(DatabaseUnavailable, match="no answer"):
                async with pool.connection(timeout=0.1):
                    pass


async def test_a_server_that_accepts_connections_before_the_deadline_is_used(server_dsn):
    async with open_proxy(server_dsn) as proxy, open_pool(proxy.dsn, size=1) as pool:
        proxy.refusals = 3
        with trio.fail_after(60):
            async with pool.connection(timeout=9) as connection:
                assert await is_usable(connection)

        assert proxy.accepted == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [({"dbname": "no_such"}, "does not exist"), ({"user": "no_such"}, "does not exist")],
)
async def test_a_refusal_is_not_retried(server_dsn, change, message):
    async with open_pool(make_conninfo(server_dsn, **change), size=1, timeout=60) as pool:
        with trio.fail_after(60), pytest.raises(DatabaseUnavailable, match=message) as caught:
            await pool.run([[bind(ADD, 1, 2)]])

    assert isinstance(caught.value.__cause__, psycopg.OperationalError)


async def test_after_one_failed_ping_all_idle_connections_are_closed(server_dsn):
    options = {"size": 3, "ping_after": 0, "ping_timeout": 0.05}
    async with open_proxy(server_dsn) as proxy, open_pool(proxy.dsn, **options) as pool:
        async with pool.connection(), pool.connection(), pool.connection():
            pass
        proxy.silent = True
        with trio.fail_after(60), pytest.raises(DatabaseUnavailable):
            async with pool.connection(timeout=0.3):
                pass

        assert pool.statistics().closed == {CloseReason.STALE: 3}


async def test_a_transaction_that_cannot_be_rolled_back_does_not_keep_its_permit(server_dsn):
    async with open_proxy(server_dsn) as proxy, open_pool(proxy.dsn, size=1) as pool:
        with trio.fail_after(60):
            async with pool.connection() as connection:
                connection.cancel_grace = 0.05
                await connection.execute("begin")
                proxy.silent = True

        assert connection.closed
        assert pool.statistics().in_use == 0


@pytest.mark.parametrize("during", ["a reset", "a check"])
async def test_a_limit_of_the_clean_up_reaches_connections_that_are_reset_or_checked(server_dsn, during):
    silent, ended = trio.Event(), trio.Event()

    async def use():
        try:
            await use_connection()
        finally:
            ended.set()

    async def use_connection():
        if during == "a check":
            silent.set()
        async with pool.connection() as connection:
            await connection.execute("begin")
            proxy.silent = True
            silent.set()

    options = {"size": 1, "timeout": 3600, "ping_after": 0, "ping_timeout": 3600}
    async with open_proxy(server_dsn) as proxy, open_pool(proxy.dsn, **options) as pool:
        async with pool.connection() as connection:
            connection.cancel_grace = 3600
        proxy.silent = during == "a check"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(use)
            await silent.wait()
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
            with trio.move_on_after(30, shield=True) as limit:
                await wait_all_tasks_blocked()
                pool.limit_cancel_grace(0)
                await ended.wait()
            proxy.close_silent()  # else a failure of this test would take an hour

        assert not limit.cancelled_caught


@attrs.define(eq=False)
class Outcomes:
    """The outcome of each numbered insert, as its caller saw it."""

    of: dict[int, str] = attrs.field(factory=dict)
    counts: Counter[str] = attrs.field(factory=Counter)

    def record(self, number: int, outcome: str) -> None:
        self.of[number] = outcome
        self.counts[outcome] += 1

    def suffice(self) -> bool:
        """Tell whether there were enough of each kind for the test to prove something."""
        return len(self.of) >= 1500 and min(self.counts[kind] for kind in ("done", "cancelled", "lost")) >= 20

    def numbers(self, outcome: str) -> set[int]:
        return {number for number, found in self.of.items() if found == outcome}


async def insert_until_enough(pool, table, outcomes, numbers, chance):
    """Insert numbers, and cancel about half of the inserts within some milliseconds."""
    while not outcomes.suffice():
        number, tag = next(numbers), str(chance.random())
        outcome = "cancelled"
        with trio.move_on_after(chance.choice([math.inf, chance.uniform(0, 0.004)])):
            try:
                results = await pool.run([[bind(table.insert, number, "a"), bind(ECHO, tag)]])
                outcome = "done"
                assert results[0][1].get_value(0, 0) == tag.encode()
            except OutcomeUnknown:
                outcome = "lost"
        outcomes.record(number, outcome)


async def terminate_some(admin, application, chance, stop):
    """Terminate a random third of an application's backends again and again; return when all of these have ended."""
    terminated: set[str] = set()
    backend = "pid || '@' || backend_start"  # a pid alone could be used again
    while not stop.is_set():
        cursor = await admin.execute(
            f"select {backend}, pg_terminate_backend(pid) from pg_stat_activity "
            "where application_name = %s and pid %% 3 = %s",
            [application, chance.randrange(3)],
        )
        terminated |= {name for name, _ in await cursor.fetchall()}
        await trio.sleep(0.004)
    while await scalar(
        admin, f"select count(*) from pg_stat_activity where {backend} = any(%s)", [list(terminated)]
    ):
        pass


async def test_after_random_terminations_and_cancellations_the_pool_is_intact(server_dsn, table):
    outcomes, chance, numbers = Outcomes(), random.Random(7), itertools.count()
    stop = trio.Event()
    dsn = make_conninfo(server_dsn, application_name="mortal")
    with trio.fail_after(100):
        async with open_pool(dsn, size=4) as pool:
            async with trio.open_nursery() as terminating:
                terminating.start_soon(terminate_some, table.admin, "mortal", chance, stop)
                async with trio.open_nursery() as working:
                    for _ in range(10):
                        working.start_soon(insert_until_enough, pool, table, outcomes, numbers, chance)
                stop.set()
            statistics = pool.statistics()
            assert statistics.in_use == 0
            assert statistics.waiting == 0
            assert statistics.idle == statistics.opened - sum(statistics.closed.values())
            # All terminated backends have ended, so the pool can see which connections are lost, and no run may fail.
            for _ in range(4):
                assert as_int((await pool.run([[bind(ADD, 1, 2)]]))[0][0]) == 3

        stored = set(await table.rows())
        assert outcomes.numbers("done") <= stored
        assert not outcomes.numbers("cancelled") & stored
        count = "select count(*)::int from pg_stat_activity where application_name = 'mortal'"
        while await scalar(table.admin, count):
            pass
