"""Connections that break, and answers that get lost on the way."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest
import trio
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import trioboss
from benchmarks.harness.proxy import open_proxy
from trioboss.model.job import make_id
from trioboss.testing import temporary_server


async def echo(job):
    return job.data


async def test_D6_all_sessions_are_killed_at_once_and_work_goes_on(dsn):
    with trio.fail_after(60):
        async with trioboss.open_boss(dsn, migrate=False) as boss:
            await boss.create_queue("q")
            await boss.work("q", echo, concurrency=5)
            await boss.wait_for("q", await boss.send("q", 1))
            with psycopg.connect(dsn, autocommit=True) as owner:
                owner.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where datname = current_database() and pid <> pg_backend_pid()"
                )
            ids = [make_id() for _ in range(5)]
            jobs = [await boss.wait_for("q", await send_surely(boss, "q", id)) for id in ids]

    assert [job.state for job in jobs] == ["completed"] * 5


async def send_surely(boss, queue, id):
    """What the outcome of a send with an id of its own is, is known by sending it again."""
    while True:
        try:
            return await boss.send(queue, 1, id=id)
        except trioboss.DatabaseUnavailable:
            await trio.sleep(0.05)


async def test_D7_a_send_whose_answer_got_lost_is_unknown_and_the_same_id_again_is_one_job(dsn):
    with trio.fail_after(60), psycopg.connect(dsn, autocommit=True) as owner:
        with trioboss.SyncBoss(dsn, migrate=False) as boss:
            boss.create_queue("q")
        async with open_proxy(dsn) as proxy, trioboss.open_boss(proxy.dsn, migrate=False) as boss:
            await boss.get_queue("q")
            id = make_id()
            proxy.close_on_loss, proxy.lose_replies_to = True, str(id).encode()
            with pytest.raises(trioboss.OutcomeUnknown):
                await boss.send("q", 1, id=id)
            lost, proxy.lose_replies_to = proxy.lost_replies, None
            there = owner.execute("select count(*) from trioboss.job where id = %s", [id]).fetchone()
            assert await boss.send("q", 1, id=id) == id
            still = owner.execute("select count(*) from trioboss.job where id = %s", [id]).fetchone()

    assert lost >= 1
    assert (there, still) == ((1,), (1,))


@pytest.fixture
def pooled_dsn():
    """A database behind a pgbouncer that moves us from session to session."""
    if (
        pgbouncer := shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/bin")
    ) is None:
        pytest.skip("pgbouncer is not installed")
    with temporary_server(tcp=True) as server, tempfile.TemporaryDirectory() as folder:
        with trioboss.SyncBoss(server.dsn):
            pass
        process = subprocess.Popen(
            [pgbouncer, "-q", write_settings(Path(folder), server.dsn)], user=UNPRIVILEGED
        )
        try:
            yield make_conninfo("", host=folder, port=6543, user="postgres", dbname="postgres")
        finally:
            process.kill()
            process.wait()


UNPRIVILEGED = "nobody" if os.geteuid() == 0 else None  # it refuses to run as root


def write_settings(folder, dsn):
    """The settings of a pgbouncer whose socket is in the folder."""
    params = conninfo_to_dict(dsn)
    password = Path(params["passfile"]).read_text().strip().rpartition(":")[2]
    server = f"host={params['host']} port={params['port']} user=postgres password={password} dbname=postgres"
    (folder / "settings").write_text(
        f"[databases]\npostgres = {server}\n[pgbouncer]\nunix_socket_dir={folder}\nlisten_port=6543\n"
        "auth_type=any\npool_mode=transaction\ndefault_pool_size=3\n"
    )
    for path in (folder, folder / "settings"):
        path.chmod(0o777)
    return str(folder / "settings")


async def test_D9_behind_a_transaction_pooler_everything_works_by_looks(pooled_dsn):
    with trio.fail_after(60):
        async with trioboss.open_boss(pooled_dsn, migrate=False) as boss:
            assert boss.is_pooled
            await boss.create_queue("q")
            await boss.work("q", echo, concurrency=3)
            ids = [await boss.send("q", number) for number in range(20)]
            jobs = [await boss.wait_for("q", id, timeout=15) for id in ids]
            deaf = boss.statistics().listener.polling

    assert [job.output for job in jobs] == list(range(20))
    assert deaf  # it knows that no words come through


async def test_D12_a_worker_keeps_its_sessions_when_there_are_no_more_to_be_had():
    with (
        trio.fail_after(60),
        temporary_server(max_connections=20, superuser_reserved_connections=0) as server,
    ):
        async with trioboss.open_boss(server.dsn) as boss:
            await boss.create_queue("q")
            await boss.work("q", echo)
            await boss.wait_for("q", await boss.send("q", 1))
            greedy = take_all_connections(server.dsn)
            crowded = await boss.wait_for("q", await boss.send("q", 2))
            with pytest.raises(trioboss.DatabaseUnavailable, match="too many clients"):
                await trio.to_thread.run_sync(open_and_close, server.dsn)
            for connection in greedy:
                connection.close()
            again = await boss.wait_for("q", await boss.send("q", 3))

    assert (crowded.output, again.output) == (2, 3)


def take_all_connections(dsn):
    """As many as there are, until the server says that there are too many."""
    taken = []
    while True:
        try:
            taken.append(psycopg.connect(dsn))
        except psycopg.OperationalError as error:
            assert "too many clients" in str(error)  # noqa: PT017
            return taken


def open_and_close(dsn):
    with trioboss.SyncBoss(dsn, migrate=False):
        pass
