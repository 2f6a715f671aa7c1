"""Notifications: waiting for them, and receiving them during other operations."""

import random

import psycopg
import pytest
import trio
from postgres_helpers import ADD, bind, is_usable
from trio.testing import wait_all_tasks_blocked


@pytest.fixture
async def listener(conn):
    await conn.execute("listen channel")
    return conn


class Wakeups(trio.abc.Instrument):
    """Counts how often trio's run loop wakes up."""

    def __init__(self):
        self.count = 0

    def after_io_wait(self, timeout):
        self.count += 1


async def payloads(connection, timeout=5.0):
    return [notify.payload for notify in await connection.wait_notifies(timeout)]


async def test_a_notification_wakes_the_task_that_waits(listener, admin):
    got = []

    async def wait():
        got.extend(await payloads(listener))

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            await admin.execute("notify channel, 'hello'")

    assert got == ["hello"]


async def test_notifications_received_before_the_call_are_returned_at_once(listener, admin):
    await admin.execute("notify channel, 'a'")
    await admin.execute("notify channel, 'b'")

    got = []
    with trio.fail_after(60):
        while len(got) < 2:
            got += await payloads(listener)

    assert got == ["a", "b"]


async def test_the_timeout_returns_an_empty_list(listener):
    with trio.fail_after(60):
        assert await listener.wait_notifies(0.01) == []
        assert await listener.wait_notifies(0) == []

    assert await is_usable(listener)


async def test_a_timeout_of_zero_returns_the_notifications_that_have_arrived(listener, admin):
    await admin.execute("notify channel, 'a'")
    with trio.fail_after(60):
        while not (got := await payloads(listener, 0)):
            pass

    assert got == ["a"]


@pytest.mark.parametrize("operation", ["execute", "run", "ping", "is_stale"])
async def test_a_notification_that_arrives_during_another_operation_is_kept(listener, admin, operation):
    await admin.execute("notify channel, 'meanwhile'")
    if operation == "execute":
        await listener.execute("select pg_sleep(0.01)")
    elif operation == "run":
        await listener.run([[bind(ADD, 1, 1)], [bind(ADD, 1, 1)]])
    elif operation == "ping":
        await listener.ping()
    else:
        assert not listener.is_stale()

    assert await payloads(listener) == ["meanwhile"]


async def test_waits_cancelled_at_random_neither_lose_nor_repeat_a_notification(listener, admin):
    chance = random.Random(1)
    sent, got, cancelled = 0, [], 0

    async def send():
        nonlocal sent
        while sent < 300 or cancelled < 20:
            await admin.execute("select pg_notify('channel', %s)", [str(sent)])
            sent += 1

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            while nursery.child_tasks or len(got) < sent:
                with trio.move_on_after(chance.uniform(0, 0.0004)) as scope:
                    got += await payloads(listener)
                cancelled += scope.cancelled_caught

    assert got == [str(n) for n in range(sent)]


async def test_receiving_without_waiting_lets_other_tasks_run(listener, admin):
    await admin.execute("notify channel, 'a'")
    wakeups = Wakeups()
    with trio.fail_after(60):
        await trio.lowlevel.wait_readable(listener.pgconn.socket)
        trio.lowlevel.add_instrument(wakeups)
        received = await listener.wait_notifies()
        trio.lowlevel.remove_instrument(wakeups)

    assert len(received) == 1
    assert wakeups.count == 1


async def test_the_connection_is_not_locked_while_the_caller_handles_a_notification(listener, admin):
    await admin.execute("notify channel, 'a'")
    with trio.fail_after(60):
        async for notify in listener.notifies(timeout=5, stop_after=1):
            assert notify.payload == "a"
            assert await is_usable(listener)


async def test_notify_handlers_get_the_notifications_instead(listener, admin):
    seen = []
    listener.add_notify_handler(seen.append)
    await admin.execute("notify channel, 'a'")

    with trio.fail_after(60):
        while not seen:
            assert await listener.wait_notifies(0.01) == []

    assert [notify.payload for notify in seen] == ["a"]


async def test_an_idle_listener_never_wakes_up(listener):
    wakeups = Wakeups()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.wait_notifies)
        await wait_all_tasks_blocked()
        trio.lowlevel.add_instrument(wakeups)
        await trio.sleep(0.3)
        trio.lowlevel.remove_instrument(wakeups)
        nursery.cancel_scope.cancel()

    # One when the task blocks, and one for the end of the sleep itself.
    assert wakeups.count <= 2


async def test_the_end_of_the_session_ends_the_wait(listener, admin):
    async def kill():
        await wait_all_tasks_blocked()
        await admin.execute("select pg_terminate_backend(%s)", [pid])

    pid = listener.info.backend_pid
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(kill)
            with pytest.raises(psycopg.OperationalError):
                await listener.wait_notifies()

    assert listener.closed
