"""NOTIFY that is full or forbidden: sends and workers go on by polling, and recover by themselves."""

from contextlib import contextmanager

import psycopg
import pytest
import trio
from fault_helpers import until

import trioboss
from trioboss.events import JobCompleted, ListenerDown, QueueWarning
from trioboss.sql import Catalog
from trioboss.testing import record, temporary_database, temporary_server


@pytest.fixture(scope="module")
def small_server():
    """A server whose queue of notifications is full after half a megabyte."""
    with temporary_server() as server, psycopg.connect(server.dsn, autocommit=True) as owner:
        if owner.info.server_version < 170000:
            pytest.skip("the size of the queue can be set from Postgres 17 on")
    with temporary_server(max_notify_queue_pages=64) as server:
        yield server


@pytest.fixture
def small_dsn(small_server):
    """A migrated database on that server."""
    with temporary_database(small_server.dsn) as dsn:
        with trioboss.SyncBoss(dsn):
            pass
        yield dsn


@contextmanager
def full_queue(dsn):
    """A session that listens and never reads, and a queue that is full because of it."""
    with psycopg.connect(dsn) as listener:
        listener.execute("listen elsewhere")
        listener.commit()
        listener.execute("select 1")  # an open transaction reads no notifications
        with (
            psycopg.connect(dsn, autocommit=True) as sender,
            pytest.raises(psycopg.errors.ProgramLimitExceeded),
        ):
            flood(sender)
        yield


def flood(sender):
    """Notify until the server refuses."""
    for number in range(1000):
        sender.execute("select pg_notify('elsewhere', %s)", [f"{number} " + "x" * 7000])


async def test_D10_with_a_full_queue_of_notifications_sends_and_workers_go_on(small_dsn):
    async def handler(job):
        return job.data

    with trio.fail_after(120):
        async with trioboss.open_boss(small_dsn, migrate=False) as boss, record(boss.events()) as recorder:
            await boss.create_queue("q")
            await boss.work("q", handler)
            await boss.wait_listening()
            with full_queue(small_dsn):
                boss._runtime.listener.poll_now()
                await recorder.wait_for(QueueWarning, lambda event: event.warning == "notify_unavailable")
                sent = [await boss.send("q", 1), await boss.send("q", 2, priority=1)]
                async with boss.transaction() as conn:
                    sent.append(await boss.send("q", 3, conn=conn))
                await boss.insert("q", [{"data": 4}])
                await boss.create_queue("other")
                await boss.schedule("q", "0 3 * * *")
                await boss.cancel("q", await boss.send("q", 5, start_after=60))
                await recorder.wait_for(JobCompleted, count=4)
                assert [(await boss.wait_for("q", id)).state for id in sent] == ["completed"] * 3
                assert boss.statistics().listener.polling
            await until(lambda: not boss.statistics().listener.polling)
            await boss.send("q", 6)
            await recorder.wait_for(JobCompleted, count=5)
            assert not recorder.of(ListenerDown)


@pytest.fixture
def mute_dsn(small_dsn):
    """The database, for a role that may do everything in the schema, but not notify."""
    with psycopg.connect(small_dsn, autocommit=True) as owner:
        owner.execute("create role mute login superuser")
        owner.execute("alter role mute nosuperuser")
        owner.execute("grant all on schema trioboss to mute")
        for kind in ("tables", "sequences", "functions"):
            owner.execute(f"grant all on all {kind} in schema trioboss to mute")
        owner.execute("revoke execute on function pg_notify(text, text) from public")
        yield psycopg.conninfo.make_conninfo(small_dsn, user="mute")
        owner.execute("grant execute on function pg_notify(text, text) to public")
        owner.execute("drop owned by mute")
        owner.execute("drop role mute")


async def test_a_role_that_may_not_notify_sends_and_works_by_polling(small_dsn, mute_dsn):
    async def handler(job):
        return job.data

    with psycopg.connect(small_dsn, autocommit=True) as owner, trio.fail_after(120):
        async with trioboss.open_boss(mute_dsn, migrate=False) as boss, record(boss.events()) as recorder:
            owner.execute("insert into trioboss.queue (name) values ('q')")
            await boss.work("q", handler)
            assert await boss.send("q", 1)
            assert await boss.send("q", 2, priority=1)
            await recorder.wait_for(JobCompleted, count=2)
            await recorder.wait_for(QueueWarning, lambda event: event.warning == "notify_unavailable")
            owner.execute("grant execute on function pg_notify(text, text) to public")
            await until(lambda: not boss.statistics().listener.polling)


def test_a_role_that_may_not_notify_pauses_a_schedule_and_erases_an_active_job(mute_dsn):
    def run(name, **values):
        statement = Catalog("trioboss").get(name)
        with psycopg.connect(mute_dsn, autocommit=True) as connection:
            cursor = psycopg.RawCursor(connection)
            parameters = [values.get(parameter) for parameter in statement.parameters]
            return cursor.execute(statement.text, parameters).fetchall()

    with trioboss.SyncBoss(mute_dsn, migrate=False) as boss:
        boss.create_queue("erased")
        boss.schedule("erased", "0 0 * * *")
        boss.send("erased")
        (job,) = boss.fetch("erased")

        assert run("pause_schedule", queue="erased", key="", paused=True)
        assert run("erase_jobs", queue="erased", ids=[job.id]) == [(1, 0, 0, 1)]
