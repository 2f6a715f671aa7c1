"""Wrong clocks: a worker's, which has no effect, and the server's, which all times depend on."""

import time
from pathlib import Path

import psycopg
import pytest
import trio
from fault_helpers import open_programs, until

import trioboss
from trioboss.events import JobsRecovered
from trioboss.testing import record, temporary_server

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
pytestmark = pytest.mark.skipif(not LIBRARIES, reason="libfaketime is not installed")
# Only the wall clock: waits use the monotonic clock, which cannot be set.
FAKE = {"LD_PRELOAD": str(LIBRARIES[0]) if LIBRARIES else "", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


@pytest.mark.parametrize("offset", ["+2h", "-2h"])
async def test_F1_the_clock_of_a_worker_does_not_matter(dsn, offset):
    with trio.fail_after(60), psycopg.connect(dsn, autocommit=True) as owner:
        async with (
            trioboss.open_boss(dsn, migrate=False, schedule=False) as boss,
            open_programs() as programs,
        ):
            await boss.create_queue("q", heartbeat=5.0)
            worker = await programs.start("victim.py", dsn, "q", **FAKE, FAKETIME=offset)
            await worker.wait_for("ready at", "\n")
            shown = float(worker.output.split(b"ready at")[1].split()[0])
            assert abs(shown - time.time()) > 3600  # its clock is wrong
            await boss.schedule("q", "* * * * * *", "tick")
            now, later = await boss.send("q", "long"), await boss.send("q", start_after=0.5)
            jobs = [await boss.wait_for("q", id) for id in (now, later)]
            await until(lambda: owner.execute("select 1 from trioboss.tick offset 1").fetchall())
            early = owner.execute(
                "select due, fired_on from trioboss.tick where fired_on < due or fired_on > due + interval '30 s'"
            ).fetchall()

    assert [(job.state, job.attempt, job.output) for job in jobs] == [("completed", 1, "victim")] * 2
    assert all(job.completed_on >= job.started_on >= job.start_after for job in jobs)
    assert early == []


def set_clock(file, offset):
    """Replace the file atomically, because the server may read it at any time."""
    new = file.with_suffix(".new")
    new.write_text(offset)
    new.chmod(0o644)
    new.replace(file)


@pytest.fixture
def shifted_server(tmp_path_factory):
    """A server whose clock is offset by the content of a file."""
    folder = Path("/tmp") if Path("/tmp").is_dir() else tmp_path_factory.getbasetemp()
    file = folder / f"trioboss-clock-{tmp_path_factory.mktemp('clock').name}"
    set_clock(file, "+0")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (FAKE | {"FAKETIME_TIMESTAMP_FILE": str(file), "FAKETIME_NO_CACHE": "1"}).items():
            patch.setenv(name, value)
        server = temporary_server()
        started = server.__enter__()
    try:
        yield started.dsn, file
    finally:
        server.__exit__(None, None, None)
        file.unlink()


async def test_F2_a_jump_of_the_servers_clock_costs_healthy_jobs_at_most_one_rescue(shifted_server):
    dsn, file = shifted_server
    release = trio.Event()
    runs = []

    async def handler(job):
        runs.append(job.attempt)
        await release.wait()
        return job.attempt

    with trio.fail_after(60):
        async with trioboss.open_boss(dsn) as boss, record(boss.events()) as recorder:
            await boss.create_queue("q", expire_in=900, retry_limit=5)
            await boss.work("q", handler, concurrency=10)
            ids = [await boss.send("q") for _ in range(3)]
            await until(lambda: len(runs) == 3)
            set_clock(file, "+1h")
            await recorder.wait_for(JobsRecovered)
            await until(lambda: len(runs) == 6)
            set_clock(file, "+0")
            release.set()
            jobs = [await boss.wait_for("q", id) for id in ids]
            after = await boss.wait_for("q", await boss.send("q"))

    assert [(job.state, job.attempt, job.output) for job in jobs] == [("completed", 2, 2)] * 3
    assert after.state == "completed"
    assert sorted(runs) == [1, 1, 1, 1, 2, 2, 2]
