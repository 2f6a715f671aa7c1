"""Notifications, pings, and whether an idle connection is still there."""

import random

import psycopg
import pytest
import trio
from postgres_helpers import ADD, is_usable, open_proxy, scalar, step, until_gone
from trio.testing import wait_all_tasks_blocked

from trioboss.postgres import open_connection


@pytest.fixture
async def listener(conn):
    await conn.execute("listen bell")
    return conn


class Wakeups(trio.abc.Instrument):
    """Counts how often the run loop wakes up, not counting the test's own timer."""

    def __init__(self):
        self.count = 0

    def after_io_wait(self, timeout):
        self.count += 1


async def payloads(connection, timeout=5.0):
    return [notify.payload for notify in await connection.wait_notifies(timeout)]


async def test_a_notification_wakes_the_one_who_waits(listener, admin):
    got = []

    async def wait():
        got.extend(await payloads(listener))

    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            await admin.execute("notify bell, 'hello'")

    assert got == ["hello"]


async def test_what_came_before_is_returned_at_once(listener, admin):
    await admin.execute("notify bell, 'a'")
    await admin.execute("notify bell, 'b'")

    got = []
    with trio.fail_after(10):
        while len(got) < 2:
            got += await payloads(listener)

    assert got == ["a", "b"]


async def test_the_timeout_returns_an_empty_list(listener):
    with trio.fail_after(10):
        assert await listener.wait_notifies(0.01) == []
        assert await listener.wait_notifies(0) == []

    assert await is_usable(listener)


async def test_no_patience_at_all_still_returns_what_has_arrived(listener, admin):
    await admin.execute("notify bell, 'a'")
    with trio.fail_after(10):
        while not (got := await payloads(listener, 0)):
            pass

    assert got == ["a"]


@pytest.mark.parametrize("operation", ["execute", "run", "ping", "is_stale"])
async def test_what_arrives_during_an_operation_is_kept(listener, admin, operation):
    await admin.execute("notify bell, 'meanwhile'")
    if operation == "execute":
        await listener.execute("select pg_sleep(0.01)")
    elif operation == "run":
        await listener.run([[step(ADD, 1, 1)], [step(ADD, 1, 1)]])
    elif operation == "ping":
        await listener.ping()
    else:
        assert not listener.is_stale()

    assert await payloads(listener) == ["meanwhile"]


async def test_waits_cancelled_at_random_lose_nothing_and_repeat_nothing(listener, admin):
    chance = random.Random(1)
    sent, got, cancelled = 0, [], 0

    async def send():
        nonlocal sent
        while sent < 300 or cancelled < 20:
            await admin.execute("select pg_notify('bell', %s)", [str(sent)])
            sent += 1

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            while nursery.child_tasks or len(got) < sent:
                with trio.move_on_after(chance.uniform(0, 0.0004)) as scope:
                    got += await payloads(listener)
                cancelled += scope.cancelled_caught

    assert got == [str(n) for n in range(sent)]


async def test_who_hears_without_having_to_wait_lets_others_run(listener, admin):
    await admin.execute("notify bell, 'a'")
    passes = Wakeups()
    with trio.fail_after(10):
        await trio.lowlevel.wait_readable(listener.pgconn.socket)
        trio.lowlevel.add_instrument(passes)
        received = await listener.wait_notifies()
        trio.lowlevel.remove_instrument(passes)

    assert len(received) == 1
    assert passes.count == 1


async def test_the_connection_is_free_while_the_caller_looks_at_a_notification(listener, admin):
    await admin.execute("notify bell, 'a'")
    with trio.fail_after(10):
        async for notify in listener.notifies(timeout=5, stop_after=1):
            assert notify.payload == "a"
            assert await is_usable(listener)


async def test_handlers_get_the_notifications_if_there_are_any(listener, admin):
    seen = []
    listener.add_notify_handler(seen.append)
    await admin.execute("notify bell, 'a'")

    with trio.fail_after(10):
        while not seen:
            assert await listener.wait_notifies(0.01) == []

    assert [notify.payload for notify in seen] == ["a"]


async def test_a_listener_at_rest_never_wakes_up(listener):
    wakeups = Wakeups()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.wait_notifies)
        await wait_all_tasks_blocked()
        trio.lowlevel.add_instrument(wakeups)
        await trio.sleep(0.3)
        trio.lowlevel.remove_instrument(wakeups)
        nursery.cancel_scope.cancel()

    # Falling asleep and the end of this sleep itself.
    assert wakeups.count <= 2


async def test_the_end_of_the_server_ends_the_wait(listener, admin):
    async def kill():
        await wait_all_tasks_blocked()
        await admin.execute("select pg_terminate_backend(%s)", [pid])

    pid = listener.info.backend_pid
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(kill)
            with pytest.raises(psycopg.OperationalError):
                await listener.wait_notifies()

    assert listener.closed


async def test_a_ping_is_answered(conn):
    await conn.ping()
    async with conn.transaction():
        await conn.ping()

    assert await is_usable(conn)


async def test_a_ping_executes_no_statement(conn, admin):
    await admin.execute("create extension if not exists pg_stat_statements")
    calls = "select sum(calls)::int from pg_stat_statements where query not like '%stat_statements%'"
    count = await scalar(admin, calls)

    for _ in range(5):
        await conn.ping()

    assert count == await scalar(admin, calls)
    await conn.execute("select 'a statement is counted'")
    assert count + 1 == await scalar(admin, calls)


async def test_a_ping_to_a_silent_server_closes_the_connection(server_dsn):
    async with open_proxy(server_dsn) as proxy, open_connection(proxy.dsn) as connection:
        await connection.ping()
        proxy.mute = True
        with trio.fail_after(10), pytest.raises(psycopg.OperationalError, match="did not answer"):
            await connection.ping(timeout=0.05)

        assert connection.closed


async def test_a_ping_in_a_cancelled_scope_leaves_the_connection_as_it_is(conn):
    with trio.CancelScope() as scope:
        scope.cancel()
        await conn.ping()

    assert scope.cancelled_caught
    assert await is_usable(conn)


async def test_a_ping_inside_a_pipeline_is_refused(conn):
    async with conn.pipeline():
        with pytest.raises(psycopg.ProgrammingError):
            await conn.ping()


async def test_a_connection_that_the_server_closed_is_stale(conn, admin):
    assert not conn.is_stale()
    pid = conn.info.backend_pid
    await admin.execute("select pg_terminate_backend(%s)", [pid])
    await until_gone(admin, pid)

    assert conn.is_stale()


async def test_the_servers_good_bye_is_heard_before_it_hangs_up(server_dsn, admin):
    async with open_proxy(server_dsn) as proxy, open_connection(proxy.dsn) as connection:
        proxy.hold_open = True
        await admin.execute("select pg_terminate_backend(%s)", [connection.info.backend_pid])

        with trio.fail_after(10):
            while not connection.is_stale():
                await trio.lowlevel.checkpoint()

        assert not connection.closed


async def test_a_closed_connection_is_stale(conn):
    await conn.close()

    assert conn.is_stale()
