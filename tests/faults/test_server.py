"""A server that crashes, stops, refuses, hurries or forgets."""

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
from trioboss.cli.doctor import _check_vacuum
from trioboss.events import ErrorEvent, ListenerDown, ListenerUp
from trioboss.model.job import make_id
from trioboss.testing import record, temporary_database, temporary_server


@pytest.fixture(scope="module")
def server():
    """A server to be mistreated."""
    with temporary_server() as server:
        yield server


@pytest.fixture
def own_dsn(server):
    """A migrated database on it."""
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
    """Let all sessions to come have a setting, and end those there are."""
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


async def send_surely(boss, data):
    """Send, again and again with the same id, until it is known to be there."""
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


async def ends_well(boss, data):
    job = await boss.wait_for("q", await send_surely(boss, data))
    return job.output == data


async def test_E2_when_a_backend_is_killed_everybody_comes_back(server, own_dsn):
    async with working(own_dsn) as (boss, recorder):
        with as_owner(own_dsn) as bystander:
            os.kill(bystander.info.backend_pid, signal.SIGKILL)
            await recorder.wait_for(ListenerDown)
        assert await ends_well(boss, "after")


async def test_E3_through_an_outage_workers_wait_and_do_not_hammer(server, own_dsn):
    async with working(own_dsn) as (boss, recorder):
        pid = int((Path(server.data) / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGINT)
        await recorder.wait_for(ListenerDown)
        began = trio.current_time()
        await trio.sleep(1.5)
        attempts = len(recorder.of(ListenerDown))
        most = 3 + (trio.current_time() - began) / 0.1
        await trio.to_thread.run_sync(server.ensure_running)
        await recorder.wait_for(ListenerUp)

        assert attempts <= most
        assert await ends_well(boss, "after")


async def test_E5_on_a_server_that_only_reads_sends_say_so_and_work_goes_on_when_it_writes_again(own_dsn):
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

        assert await ends_well(boss, "after")


@pytest.mark.parametrize(("setting", "value"), [("statement_timeout", "300ms"), ("lock_timeout", "50ms")])
async def test_E8_with_impatient_settings_everything_works(own_dsn, setting, value):
    async with working(own_dsn) as (boss, _):
        set_for_database(own_dsn, setting, value)
        with as_owner(own_dsn) as owner, owner.transaction():
            owner.execute("lock table trioboss.job_common in share mode")
            with trio.move_on_after(0.5):
                await send_surely(boss, "held up")

        assert await ends_well(boss, "after")


@pytest.mark.parametrize("setting", ["idle_session_timeout", "idle_in_transaction_session_timeout"])
async def test_E9_sessions_that_are_ended_at_rest_are_replaced(own_dsn, setting):
    async with working(own_dsn) as (boss, recorder):
        set_for_database(own_dsn, setting, "200ms")
        if setting == "idle_session_timeout":
            await recorder.wait_for(ListenerDown, count=2)
        else:
            await recorder.wait_for(ListenerUp)
            await trio.sleep(0.4)

        assert await ends_well(boss, "after")


def test_E13_doctor_says_that_autovacuum_is_off_and_that_a_snapshot_is_old():
    assert _check_vacuum("off", 0).verdict == "failure"
    assert _check_vacuum("on", 1000).verdict == "warning"
    assert _check_vacuum("on", 1).verdict == "ok"


async def test_E16_jobs_that_an_operator_truncates_are_lost_leases_and_no_crash(own_dsn):
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
                owner.execute("truncate trioboss.job")
            went_on.set()
            await until(lambda: boss.statistics().workers[0].dispatchers[0].lost)
            await boss.off_work(worker)
            await boss.create_queue("q")
            await boss.work("q", echo)

            assert await ends_well(boss, "after")
            assert recorder.of(ErrorEvent) == []


@pytest.fixture
def guarded_dsn():
    """A server that asks for a password, which is in a file."""
    with temporary_server(tcp=True) as server:
        with trioboss.SyncBoss(server.dsn):
            pass
        yield server.dsn


def replace_password(passfile, password):
    passfile.write_text(passfile.read_text().strip().rpartition(":")[0] + f":{password}\n")


async def test_E17_after_a_change_of_the_password_a_worker_comes_back_without_a_restart(guarded_dsn):
    """It is read from the file for every connection."""
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

            assert await ends_well(boss, "after")
