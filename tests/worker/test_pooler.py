"""Behind pgbouncer, which assigns a session for one transaction: workers work in polling mode, and log it."""

import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import psycopg
import pytest
import trio
from psycopg.conninfo import conninfo_to_dict
from worker_helpers import TIMEOUT

import trioboss
from trioboss.cli import main
from trioboss.cli.health import Metrics
from trioboss.postgres.blocking import is_pooled
from trioboss.testing import temporary_database, temporary_server

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

pytestmark = pytest.mark.skipif(
    PGBOUNCER is None, reason="pgbouncer is not installed (Debian package pgbouncer)"
)


@pytest.fixture
def folder():
    """A folder that every account can use, for its socket too; that of pytest is not."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        yield Path(name)


@pytest.fixture(scope="module")
def server():
    """A server that pgbouncer can reach under any account."""
    with temporary_server(tcp=True) as server:
        yield server


@pytest.fixture
def dsn(server):
    """A migrated database."""
    with temporary_database(server.dsn) as dsn:
        with trioboss.SyncBoss(dsn):
            pass
        yield dsn


@pytest.fixture
def pooled_dsn(dsn, folder):
    """The test's database behind a pgbouncer, which refuses to run as root."""
    parts = conninfo_to_dict(dsn)
    password = Path(parts["passfile"]).read_text().strip().rsplit(":", 1)[1]
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host={parts['host']} port={parts['port']} user={parts['user']} password={password}\n"
        f"[pgbouncer]\nlisten_addr =\nunix_socket_dir = {folder}\nauth_type = any\n"
        "pool_mode = transaction\nmax_client_conn = 100\ndefault_pool_size = 10\n"
        "ignore_startup_parameters = extra_float_digits,options\n"
    )
    account = {"user": "nobody"} if os.geteuid() == 0 else {}
    process = subprocess.Popen([PGBOUNCER, "-q", settings], **account)
    pooled = f"postgresql://{parts['user']}@/{parts['dbname']}?host={folder}&port=6432"
    try:
        wait_until_it_answers(pooled)
        yield pooled
    finally:
        process.terminate()
        process.wait()


def wait_until_it_answers(dsn):
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            return psycopg.connect(dsn).close()
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


async def test_a_worker_behind_a_pooler_works_in_polling_mode(pooled_dsn):
    done = trio.open_memory_channel(10)

    async def handle(job):
        await done[0].send(job.data)

    async with trioboss.open_boss(pooled_dsn, migrate=False) as boss:
        assert boss.is_pooled
        await boss.create_queue("q")
        await boss.work("q", handle)
        await boss.send("q", 1)

        with trio.fail_after(TIMEOUT):
            assert await done[1].receive() == 1
        assert boss.statistics().listener.polling


async def test_a_worker_behind_a_pooler_logs_that_it_polls(pooled_dsn, workers, boss):
    workers.dsn = pooled_dsn
    worker = await workers.start("-q", "short")

    await worker.prints("notify_unavailable", "polling every 2 s")
    await worker.prints("through a transaction pooler: polling mode")


async def test_metrics_and_messages_agree_behind_a_pooler(pooled_dsn, caplog):
    caplog.set_level("INFO", "trioboss")
    async with trioboss.open_boss(pooled_dsn, migrate=False) as boss:
        await boss.wait_listening()
        started = trio.Event()
        started.set()
        metrics = Metrics(boss, started)
        lines = await metrics.lines()
        objection = metrics.objection()

    assert objection is None
    assert {"trioboss_listening 0", "trioboss_polling 1"} <= set(lines)
    assert "LISTEN does not work on this connection" in caplog.text
    assert "listener: polling, notifications do not arrive" in caplog.text
    assert "listener: up" not in caplog.text


def test_a_one_shot_command_is_silent_about_the_pooler(pooled_dsn, capsys):
    for command in (["queues"], ["create-queue", "q"], ["send", "q"], ["jobs", "q"], ["workers"]):
        assert main([*command, "--dsn", pooled_dsn]) == 0
        assert capsys.readouterr().err == ""


def test_doctor_finds_the_pooler(pooled_dsn, capsys):
    main(["doctor", "--dsn", pooled_dsn])

    printed = capsys.readouterr().out
    assert "warning  pooler: connected through a transaction pooler" in printed
    assert "warning  notify: notifications do not arrive: workers poll every 2 s (polling mode)" in printed


def test_blocking_bosses_share_sessions_and_leave_nothing_in_them(pooled_dsn, dsn):
    """Many threads over few server sessions: a statement that one had prepared there would be run by another."""
    failures: list[BaseException] = []

    def use(number: int) -> None:
        try:
            with trioboss.SyncBoss(pooled_dsn, migrate=False) as boss:
                for value in range(30):
                    boss.send("q", [number, value])
                    boss.send("q", [number, value], priority=1, singleton_key=str(value))
                    boss.complete("q", boss.fetch("q", batch_size=2))
        except BaseException as error:
            failures.append(error)

    with trioboss.SyncBoss(dsn, migrate=False) as direct:
        direct.create_queue("q")
    threads = [threading.Thread(target=use, args=[number]) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with psycopg.connect(pooled_dsn, autocommit=True, prepare_threshold=None) as connection:
        for _ in range(20):
            assert connection.execute("select count(*) from pg_prepared_statements").fetchone() == (0,)
            assert connection.execute("show enable_seqscan").fetchone() == ("on",)
    with trioboss.SyncBoss(dsn, migrate=False) as direct:
        direct.get_queues()
        (own,) = direct._idle
        assert not is_pooled(own)
