"""Connections that break, replies that are lost, poolers, and a server without free connections."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest
import trio
from fault_helpers import until
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import trioboss
from benchmarks.harness.proxy import open_proxy
from trioboss.events import JobStarted
from trioboss.model.ids import make_id
from trioboss.testing import record, temporary_server


async def echo(job):
    return job.data


async def test_D6_work_goes_on_after_all_sessions_were_terminated_at_once(dsn):
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
            jobs = [await boss.wait_for("q", await send_until_acknowledged(boss, "q", id)) for id in ids]

    assert [job.state for job in jobs] == ["completed"] * 5


async def send_until_acknowledged(boss, queue, id):
    """Send a job with its own id until the send succeeds: sending it twice is one job."""
    while True:
        try:
            return await boss.send(queue, 1, id=id)
        except trioboss.DatabaseUnavailable:
            await trio.sleep(0.05)


async def test_D7_a_send_whose_reply_is_lost_raises_and_the_same_id_again_is_one_job(dsn):
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
    """A database behind a pgbouncer in transaction mode."""
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


UNPRIVILEGED = "nobody" if os.geteuid() == 0 else None  # pgbouncer refuses to run as root


def write_settings(folder, dsn):
    """Write the settings of a pgbouncer whose socket is in the folder; return the path."""
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


async def test_D9_behind_a_transaction_pooler_jobs_are_found_by_polling(pooled_dsn):
    with trio.fail_after(60):
        async with trioboss.open_boss(pooled_dsn, migrate=False) as boss:
            assert boss.is_pooled
            await boss.create_queue("q")
            await boss.work("q", echo, concurrency=3)
            ids = [await boss.send("q", number) for number in range(20)]
            jobs = [await boss.wait_for("q", id, timeout=60) for id in ids]
            polling = boss.statistics().listener.polling

    assert [job.output for job in jobs] == list(range(20))
    assert polling  # the listener found out that no notification arrives


async def test_D12_a_worker_keeps_its_sessions_when_max_connections_is_reached():
    with (
        trio.fail_after(60),
        temporary_server(max_connections=20, superuser_reserved_connections=0) as server,
    ):
        async with trioboss.open_boss(server.dsn) as boss:
            await boss.create_queue("q")
            await boss.work("q", echo)
            await boss.wait_for("q", await boss.send("q", 1))
            taken = take_all_connections(server.dsn)
            during = await boss.wait_for("q", await boss.send("q", 2))
            with pytest.raises(trioboss.DatabaseUnavailable, match="too many clients"):
                await trio.to_thread.run_sync(open_and_close, server.dsn)
            for connection in taken:
                connection.close()
            after = await boss.wait_for("q", await boss.send("q", 3))

    assert (during.output, after.output) == (2, 3)


def take_all_connections(dsn):
    """Open connections until the server refuses one."""
    taken = []
    while True:
        try:
            taken.append(psycopg.connect(dsn))
        except psycopg.OperationalError as error:
            assert "too many clients" in str(error)  # noqa: PT017
            return taken


def open_and_close(dsn):
    with trioboss.SyncBoss(dsn, migrate=False) as boss:
        boss.get_queues()


@pytest.mark.parametrize("works", [False, True])
async def test_a_boss_whose_connections_are_black_holes_ends_soon_after_its_grace(dsn, works, mock_clock):
    """The clock stands still until nothing is answered any more, and then jumps from limit to limit: the time that it
    shows at the end is the sum of all limits, however busy the machine is.
    """

    async def handler(job):
        await trio.sleep_forever()

    async with open_proxy(dsn) as proxy:
        async with trioboss.open_boss(proxy.dsn, migrate=False, grace=1.0) as boss:
            await boss.create_queue("q")
            if works:
                async with record(boss.events()) as recorder:
                    await boss.send("q")
                    await boss.work("q", handler)
                    await recorder.wait_for(JobStarted)
            proxy.silent = True
            left_at = trio.current_time()
            mock_clock.autojump_threshold = 0.05
        assert trio.current_time() - left_at <= 1 + 3


@pytest.mark.parametrize("statement", [b"pg_backend_pid", b"pg_catalog.pg_class", b"has_table_privilege"])
async def test_a_server_that_goes_away_while_a_boss_opens_is_waited_for(dsn, statement):
    async with open_proxy(dsn) as proxy, trio.open_nursery() as nursery:
        proxy.lose_replies_to, proxy.close_on_loss = statement, True

        async def heal():
            await until(lambda: proxy.lost_replies)
            proxy.lose_replies_to = None

        nursery.start_soon(heal)
        async with trioboss.open_boss(proxy.dsn, migrate=False, connect_wait=60) as boss:
            assert await boss.is_installed()
    assert proxy.lost_replies


async def test_a_server_that_goes_away_while_a_boss_opens_is_an_error_of_ours(dsn):
    async with open_proxy(dsn) as proxy:
        proxy.lose_replies_to, proxy.close_on_loss = b"pg_backend_pid", True
        with pytest.raises(trioboss.DatabaseUnavailable):
            async with trioboss.open_boss(proxy.dsn, migrate=False, connect_wait=0):
                pass
