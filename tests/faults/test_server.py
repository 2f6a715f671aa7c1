"""A server that crashes, stops, is read-only, has short timeouts, or loses data."""

import os
import signal
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import psycopg
import pytest
import trio
from fault_helpers import until
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier

import trioboss
from trioboss.cli.findings import check_vacuum
from trioboss.events import ErrorEvent, JobStarted, ListenerDown, ListenerUp
from trioboss.model.ids import make_id
from trioboss.runtime.adapter import ListenAdapter
from trioboss.testing import record, temporary_database, temporary_server


@pytest.fixture(scope="module")
def server():
    """A server of this module, which its tests crash and reconfigure."""
    with temporary_server() as server:
        yield server


@pytest.fixture
def own_dsn(server):
    """A migrated database on that server."""
    server.ensure_running()
    with temporary_database(server.dsn) as dsn:
        with trioboss.SyncBoss(dsn):
            pass
        yield dsn
        server.ensure_running()


@contextmanager
def as_owner(dsn):
    with psycopg.connect(dsn, autocommit=True) as owner:
        yield owner


def set_for_database(dsn, setting, value):
    """Give a setting to all future sessions, and terminate the present ones."""
    with as_owner(dsn) as owner:
        database = Identifier(owner.info.dbname)
        owner.execute(SQL("alter database {} set {} = {}").format(database, SQL(setting), value))
        end_sessions(owner)


def end_sessions(owner):
    owner.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid()"
    )


async def echo(job):
    return job.data


@asynccontextmanager
async def working(dsn, **options):
    """A boss that works on q."""
    with trio.fail_after(60):
        async with (
            trioboss.open_boss(dsn, migrate=False, **options) as boss,
            record(boss.events()) as recorder,
        ):
            await boss.create_queue("q")
            await boss.work("q", echo)
            await boss.wait_for("q", await boss.send("q", "before"))
            yield boss, recorder


async def send_until_acknowledged(boss, data):
    """Send a job with the same id until the send succeeds."""
    id = make_id()
    while True:
        try:
            return await boss.send("q", data, id=id)
        except (
            trioboss.DatabaseUnavailable,
            psycopg.OperationalError,
            psycopg.errors.ReadOnlySqlTransaction,
        ):
            await trio.sleep(0.05)


async def completes(boss, data):
    job = await boss.wait_for("q", await send_until_acknowledged(boss, data))
    return job.output == data


async def test_E2_after_a_backend_was_killed_all_connections_are_opened_again(server, own_dsn):
    async with working(own_dsn) as (boss, recorder):
        with as_owner(own_dsn) as other:
            os.kill(other.info.backend_pid, signal.SIGKILL)
            await recorder.wait_for(ListenerDown)
        assert await completes(boss, "after")


async def test_E3_during_an_outage_a_worker_reconnects_at_a_bounded_rate(server, own_dsn, monkeypatch):
    attempts = []
    connect = ListenAdapter.open_listening_connection

    def count_attempts(self, registrations):
        attempts.append(trio.current_time())
        return connect(self, registrations)

    async with working(own_dsn) as (boss, recorder):
        monkeypatch.setattr(ListenAdapter, "open_listening_connection", count_attempts)
        pid = int((Path(server.data) / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGINT)
        await recorder.wait_for(ListenerDown)
        began = trio.current_time()
        await trio.sleep(1.5)
        tried, reported = len(attempts), len(recorder.of(ListenerDown))
        most = 3 + (trio.current_time() - began) / 0.1
        await trio.to_thread.run_sync(server.ensure_running)
        await recorder.wait_for(ListenerUp)

        assert 0 < tried <= most
        assert reported <= 5
        assert await completes(boss, "after")


@pytest.mark.parametrize(
    ("options", "seconds"),
    [({"presence_grace": 4.0}, 7), pytest.param({}, 20, marks=pytest.mark.soak, id="defaults")],
)
async def test_a_restart_that_takes_longer_than_the_grace_cancels_no_handler(
    server, own_dsn, options, seconds
):
    """Two bosses: none takes the jobs of the other, although both were away for longer than the grace. Progress that
    cannot be recorded meanwhile is dropped, and costs no attempt.
    """
    cancelled = []
    down, proceed = trio.Event(), trio.Event()

    async def handler(job):
        try:
            await down.wait()
            await job.progress("half")
            await proceed.wait()
        except trio.Cancelled:
            cancelled.append((job.id, job.cancelled))
            raise
        return job.attempt

    with trio.fail_after(120):
        async with (
            trioboss.open_boss(own_dsn, migrate=False, **options) as one,
            trioboss.open_boss(own_dsn, migrate=False, **options) as two,
            record(one.events()) as first,
            record(two.events()) as second,
        ):
            await one.create_queue("q", retry_limit=5)
            ids = [await one.send("q", number) for number in range(6)]
            for boss in (one, two):
                await boss.work("q", handler, concurrency=3)
            for recorder in (first, second):
                await recorder.wait_for(JobStarted, count=3)
            pid = int((Path(server.data) / "postmaster.pid").read_text().split()[0])
            os.kill(pid, signal.SIGINT)
            for recorder in (first, second):
                await recorder.wait_for(ListenerDown)
            down.set()
            await trio.sleep(seconds)
            for recorder in (first, second):
                await recorder.wait_for(ErrorEvent, lambda each: each.actor.startswith("progress"), count=3)
            await trio.to_thread.run_sync(server.ensure_running)
            for recorder in (first, second):
                await recorder.wait_for(ListenerUp)
            await trio.sleep(seconds)
            assert cancelled == []
            proceed.set()
            assert [(await one.wait_for("q", id)).output for id in ids] == [1] * 6


async def test_E5_on_a_read_only_server_sends_raise_and_work_goes_on_when_it_is_writable(own_dsn):
    async with working(own_dsn) as (boss, recorder):
        set_for_database(own_dsn, "default_transaction_read_only", "on")
        await recorder.wait_for(ListenerUp)
        with pytest.raises((psycopg.errors.ReadOnlySqlTransaction, trioboss.DatabaseUnavailable)):
            await boss.send("q", "refused")
        with as_owner(own_dsn) as owner:
            owner.execute("set default_transaction_read_only = off")
            owner.execute(
                SQL("alter database {} reset default_transaction_read_only").format(
                    Identifier(owner.info.dbname)
                )
            )
            end_sessions(owner)

        assert await completes(boss, "after")


@pytest.mark.parametrize(("setting", "value"), [("statement_timeout", "300ms"), ("lock_timeout", "50ms")])
async def test_E8_work_goes_on_with_short_statement_and_lock_timeouts(own_dsn, setting, value):
    async with working(own_dsn) as (boss, _):
        set_for_database(own_dsn, setting, value)
        with as_owner(own_dsn) as owner, owner.transaction():
            owner.execute("lock table trioboss.live_job_common in share mode")
            with trio.move_on_after(0.5):
                await send_until_acknowledged(boss, "delayed")

        assert await completes(boss, "after")


@pytest.mark.parametrize("setting", ["idle_session_timeout", "idle_in_transaction_session_timeout"])
async def test_E9_sessions_that_the_server_ends_when_idle_are_replaced(own_dsn, setting):
    async with working(own_dsn) as (boss, recorder):
        set_for_database(own_dsn, setting, "200ms")
        if setting == "idle_session_timeout":
            await recorder.wait_for(ListenerDown, count=2)
        else:
            await recorder.wait_for(ListenerUp)
            await trio.sleep(0.4)

        assert await completes(boss, "after")


def test_E13_doctor_reports_disabled_autovacuum_and_old_snapshots():
    assert check_vacuum("off", 0).status == "failure"
    assert check_vacuum("on", 1000).status == "warning"
    assert check_vacuum("on", 1).status == "ok"


async def test_E16_truncated_jobs_are_lost_leases_and_crash_nothing(own_dsn):
    went_on = trio.Event()
    began = trio.Event()

    async def handler(job):
        began.set()
        await went_on.wait()

    with trio.fail_after(60):
        async with (
            trioboss.open_boss(own_dsn, migrate=False) as boss,
            record(boss.events()) as recorder,
        ):
            await boss.create_queue("long")
            worker = await boss.work("long", handler)
            await boss.send("long")
            await began.wait()
            with as_owner(own_dsn) as owner:
                owner.execute("truncate trioboss.live_job")
            went_on.set()
            await until(lambda: boss.statistics().workers[0].dispatchers[0].lost)
            await boss.off_work(worker)
            await boss.create_queue("q")
            await boss.work("q", echo)

            assert await completes(boss, "after")
            assert recorder.of(ErrorEvent) == []


@pytest.fixture
def guarded_dsn():
    """A server with a password, which is in a passfile."""
    with temporary_server(tcp=True) as server:
        with trioboss.SyncBoss(server.dsn):
            pass
        yield server.dsn


def replace_password(passfile, password):
    passfile.write_text(passfile.read_text().strip().rpartition(":")[0] + f":{password}\n")


async def test_E17_after_a_password_change_a_worker_reconnects_without_a_restart(guarded_dsn):
    """The passfile is read for every connection."""
    passfile = Path(conninfo_to_dict(guarded_dsn)["passfile"])
    with as_owner(guarded_dsn) as owner:
        async with working(guarded_dsn) as (boss, recorder):
            owner.execute("alter role postgres password 'another'")
            end_sessions(owner)
            (refusal, *_) = await recorder.wait_for(
                ListenerDown, lambda event: "password authentication failed" in event.reason
            )
            assert "another" not in refusal.reason
            replace_password(passfile, "another")
            await recorder.wait_for(ListenerUp)

            assert await completes(boss, "after")
