"""Workers that are killed, servers that are restarted, and what processes do for each other."""

import contextlib
import os
import signal
import sys
import time
from functools import partial

import psycopg
import pytest
import trio
from worker_helpers import TIMEOUT, first_to_print

import trioboss
from trioboss.cli.processes import keep_process
from trioboss.postgres.embedded import EmbeddedPostgres


async def test_the_jobs_of_a_killed_worker_run_elsewhere(boss, workers):
    id = await boss.send("long")
    both = await workers.start_two("-q", "long")
    first = await first_to_print(both, "began", id)
    (other,) = set(both) - {first}

    first.signal(signal.SIGKILL)

    line = await other.prints("began", id)
    assert line.split()[3] == "2"
    assert (await boss.get_job_by_id("long", id)).retry_count == 1


async def test_a_poison_pill_uses_up_its_retries_and_lands_in_the_dead_letter_queue(boss, workers):
    """The supervisor replaces the processes that the job kills; other jobs are completed."""
    await boss.create_queue("poison", retry_limit=1, dead_letter="graves")
    pill, innocent = await boss.send("poison"), await boss.send("short", "fine")
    supervisor = await workers.start("--processes", "2", "-q", "poison", "-q", "short")

    with trio.fail_after(TIMEOUT):
        assert (await boss.wait_for("short", innocent)).output == "fine"
        dead = await boss.wait_for("poison", pill)
    assert (dead.state, dead.attempt) == ("failed", 2)
    (grave,) = await boss.find_jobs("graves")
    assert (grave.source_queue, grave.source_id) == ("poison", pill)
    pids = {line.split()[4] for line in supervisor.matching("began", pill)}
    assert len(pids) == 2
    await supervisor.prints("exited with code -9", times=2)
    supervisor.signal()
    assert await supervisor.ends() == 0


async def keep(script, stopping, **options):
    """Supervise a process that runs this script; return the exit code."""
    codes = []
    start = partial(trio.lowlevel.open_process, [sys.executable, "-S", "-c", script], **options)
    with trio.fail_after(TIMEOUT):
        await keep_process(start, set(), stopping, codes)
    return codes


@pytest.mark.parametrize("code", [3, 0])
async def test_a_process_that_exits_too_often_is_not_restarted(caplog, code):
    """Also one with exit code 0: nothing has stopped it."""
    assert await keep(f"raise SystemExit({code})", trio.Event()) == [1]

    errors = [record.getMessage() for record in caplog.records]
    assert len(errors) == 7
    assert "exit too often" in errors[-1]


async def test_a_process_that_is_stopped_before_it_handles_signals_has_not_failed():
    stopping = trio.Event()
    stopping.set()

    assert await keep("import time; time.sleep(600)", stopping) == [0]


async def test_a_process_that_control_c_interrupts_while_it_starts_has_not_failed():
    stopping = trio.Event()
    stopping.set()

    ignoring = partial(signal.signal, signal.SIGTERM, signal.SIG_IGN)
    assert await keep("raise SystemExit(130)", stopping, preexec_fn=ignoring) == [0]


async def test_when_the_leader_is_killed_another_boss_does_maintenance(workers, dsn):
    async with trioboss.open_boss(dsn, migrate=False, supervise=False) as boss:
        for name in ("graves", "long"):
            await boss.create_queue(name)
        leader = await workers.start("-q", "long", "--json-logs")
        await leader.prints("LeaderChanged", "true")
        id = await boss.send("long")
        await leader.prints("began", id)
        other = await workers.start("-q", "long", "--json-logs")
        await other.prints("ListenerUp")

        leader.signal(signal.SIGKILL)

        await other.prints("LeaderChanged", "true")
        await other.prints("JobsRecovered", id)
        await other.prints("began", id)


async def test_two_workers_share(boss, workers):
    ids = [await boss.send("long") for _ in range(2)]
    first, second = await workers.start_two("-q", "long", "-c", "1")

    await first.prints("began")
    await second.prints("began")

    began = {line.split()[2] for worker in (first, second) for line in worker.matching("began")}
    assert began == {str(id) for id in ids}


async def test_a_job_is_cancelled_from_another_process(boss, workers):
    id = await boss.send("long")
    worker = await workers.start("-q", "long")
    await worker.prints("began", id)

    await boss.cancel("long", id)

    await worker.prints("cancelled", id)
    assert (await boss.get_job_by_id("long", id)).state == "cancelled"


async def test_a_listener_whose_session_is_terminated_reconnects_and_misses_no_job(boss, workers, dsn):
    worker = await workers.start("-q", "long", "-q", "short", "--json-logs")
    before = await boss.send("long", 2.0)
    await worker.prints("began", before)

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
    after = await boss.send("short", "again")

    await worker.prints("ListenerDown")
    with trio.fail_after(TIMEOUT):
        assert (await boss.wait_for("short", after)).output == "again"
        assert (await boss.wait_for("long", before)).attempt == 1
    await worker.prints("ListenerUp", times=2)


def crash_and_restart(server):
    """Stop the server as if the power had failed, and start it again."""
    pid = int((server.data / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGQUIT)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.kill(pid, 0)
            time.sleep(0.01)
    server.ensure_running()


async def test_an_immediate_restart_of_the_server_loses_nothing(workers):
    with EmbeddedPostgres(keep_data=False) as server:
        workers.dsn = server.dsn
        async with trioboss.open_boss(server.dsn) as boss:
            await boss.create_queue("graves")
            await boss.create_queue("long")
            worker = await workers.start("-q", "long")
            running = await boss.send("long", 2.0)
            waiting = await boss.send("long", 0, start_after=1.0)
            await worker.prints("began", running)

            await trio.to_thread.run_sync(crash_and_restart, server)

            with trio.fail_after(TIMEOUT):
                assert (await boss.wait_for("long", waiting)).state == "completed"
                assert (await boss.wait_for("long", running)).state == "completed"
        await workers.kill()
