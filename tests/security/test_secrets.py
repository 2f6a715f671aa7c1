"""A canary in the password and one in the payload: found where they belong, and nowhere else."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import trio
from psycopg.conninfo import make_conninfo

import trioboss
from trioboss.cli import main
from trioboss.cli.commands import make_parser
from trioboss.cli.health import Metrics
from trioboss.cli.processes import _child_command, _child_environment
from trioboss.model.ids import make_id
from trioboss.postgres.dsn import hide_password
from trioboss.testing import temporary_server

PASSWORD = "canary-password-7f3a"
PAYLOAD = "canary-payload-91bc"
CANARY = re.compile(f"{PASSWORD}|{PAYLOAD}")


@pytest.fixture(scope="module")
def guarded_server():
    """A server with a log of its own."""
    with temporary_server(log_min_messages="info", log_connections=True, log_disconnections=True) as server:
        yield server


@pytest.fixture
async def worker(guarded_server):
    """A worker process with everything logged; it gives its output when asked for the second time."""
    dsn = make_conninfo(guarded_server.dsn, password=PASSWORD)
    environment = {**os.environ, "TRIOBOSS_DSN": dsn, "PYTHONPATH": str(Path(__file__).parent)}
    command = [
        sys.executable,
        "-m",
        "trioboss",
        "worker",
        "canary_app:app",
        "--log-level",
        "debug",
        "--processes",
        "2",
    ]
    process = await trio.lowlevel.open_process(
        [*command, "--health", "0"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        yield dsn, process
    finally:
        process.kill()
        await process.wait()
        process.stdout and await process.stdout.aclose()


async def read_all(stream, into):
    async for chunk in stream:
        into.append(chunk)


@pytest.mark.skipif(sys.platform != "linux", reason="the process list is read from /proc")
async def test_neither_password_nor_payload_is_seen_where_it_does_not_belong(worker, guarded_server):
    dsn, process = worker
    said = []
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read_all, process.stdout, said)
            async with trioboss.open_boss(dsn) as boss:
                await boss.create_queue("good")
                await boss.create_queue("bad", retry_limit=0)
                await send_both(boss)
                with psycopg.connect(guarded_server.dsn, autocommit=True) as owner:
                    owner.execute(
                        "select pg_terminate_backend(pid) from pg_stat_activity "
                        "where backend_type = 'client backend' and pid <> pg_backend_pid()"
                    )
                await send_both(boss)
                shown = command_lines() + activity(guarded_server.dsn) + repr(boss)
            process.terminate()
            await process.wait()
    log = b"".join(said).decode()

    assert "this one fails" in log  # the log was captured
    assert not CANARY.search(log)
    assert not CANARY.search(shown)
    assert "worker canary_app:app" in shown  # it was seen
    assert not CANARY.search(guarded_server.log.read_text())


async def send_both(boss):
    """One that completes, one that fails; wait for both, through whatever happens to the connections."""
    for queue in ("good", "bad"):
        id = make_id()
        while True:
            try:
                await boss.send(queue, {"secret": PAYLOAD}, id=id)
                await boss.wait_for(queue, id)
                break
            except trioboss.DatabaseUnavailable:
                await trio.sleep(0.1)


def command_lines():
    """The arguments of all processes, as `ps` shows them."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(lines)


def activity(dsn):
    """The sessions as other users of the database see them."""
    with psycopg.connect(dsn) as connection:
        return str(connection.execute("select query, application_name from pg_stat_activity").fetchall())


async def test_metrics_and_probes_hold_no_secret(boss):
    metrics = Metrics(boss)
    await boss.create_queue("q")

    async def handler(job):
        return job.data

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(metrics.run)
            await boss.work("q", handler)
            await boss.wait_for("q", await boss.send("q", PAYLOAD, singleton_key=PAYLOAD))
            text = "\n".join(await metrics.lines())
            nursery.cancel_scope.cancel()

    assert 'trioboss_completed_total{queue="q"} 1' in text
    assert not CANARY.search(text)


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://user:{PASSWORD}@127.0.0.1:1/db",
        f"postgresql://user:{PASSWORD}/x@127.0.0.1:1/db",
        f"postgresql://user:{PASSWORD}@nowhere.invalid/db",
        f"host=127.0.0.1 port=1 password={PASSWORD}",
        f"host=127.0.0.1 port=1 password='{PASSWORD} unfinished",
        f"host=127.0.0.1 port=1 sslmode=nonsense password={PASSWORD}",
        f"nonsense password={PASSWORD}=",
    ],
)
def test_no_error_repeats_the_password(dsn):
    with pytest.raises(trioboss.TriobossError) as error, trioboss.SyncBoss(dsn):
        pass
    chain = [error.value, error.value.__cause__, error.value.__context__]
    shown = " ".join(repr(each) + str(each) for each in chain) + hide_password(dsn)

    assert PASSWORD not in shown


def test_a_password_on_the_command_line_is_complained_of_and_does_not_reach_the_children(capsys):
    dsn = f"postgresql://user:{PASSWORD}@127.0.0.1:1/db"
    assert main(["queues", "--dsn", dsn, "--schema", "no schema"]) == 2  # refused without a connection
    args = make_parser().parse_args(["worker", "a:b", "--dsn", dsn, "--processes", "2"])

    said = capsys.readouterr().err

    assert "others can see the password" in said
    assert PASSWORD not in said
    assert not CANARY.search(" ".join(_child_command(args, 0)))
    assert _child_environment(args)["TRIOBOSS_DSN"] == dsn


def test_errors_of_a_call_do_not_repeat_the_payload(sync_boss):
    sync_boss.create_queue("q", policy="key_strict_fifo")
    calls = [
        lambda: sync_boss.send("q", PAYLOAD),
        lambda: sync_boss.send("nowhere", PAYLOAD),
        lambda: sync_boss.send("q", {"a": [PAYLOAD, float("nan")]}, singleton_key="k"),
        lambda: sync_boss.send("q", PAYLOAD * 1_000_000, singleton_key="k"),
        lambda: sync_boss.insert("q", [PAYLOAD]),
        lambda: sync_boss.insert("q", [{"data": PAYLOAD}]),
        lambda: sync_boss.insert("q", [{"data": PAYLOAD, "priority": "high"}]),
        lambda: sync_boss.send("q", PAYLOAD, singleton_key="k", retry_limit=-1),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(trioboss.TriobossError) as error:
            call()
        assert PAYLOAD not in str(error.value), number
