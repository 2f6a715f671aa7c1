"""A worker as operators see it in the database: where it runs, its version and slots, and a blocked event loop."""

import json
import os
import platform
import time
from uuid import uuid4

import psycopg
import trio
from worker_helpers import TIMEOUT

import trioboss
from trioboss.actors import lag_monitor


async def handle(job):
    pass


block_loop = time.sleep  # as a handler should not do


def read_info(dsn):
    with psycopg.connect(dsn) as connection:
        ((info,),) = connection.execute("select info from trioboss.worker").fetchall()
    return info


async def test_a_worker_tells_where_it_runs(boss):
    await boss.create_queue("q")
    await boss.work("q", handle, concurrency=7)

    assert read_info(boss.dsn) == {
        "host": platform.node(),
        "pid": os.getpid(),
        "version": trioboss.__version__,
        "slots": 7,
    }


async def test_the_slots_of_a_worker_with_batches_are_the_jobs_that_it_runs_at_once(boss):
    await boss.create_queue("q")
    await boss.work("q", handle, concurrency=3, batch_size=5, prefetch=4)

    assert read_info(boss.dsn)["slots"] == 15


async def test_a_blocked_event_loop_is_written_to_the_rows_of_its_workers(boss, monkeypatch):
    monkeypatch.setattr(lag_monitor, "_INTERVAL", 0.05)
    await boss.create_queue("q")
    await boss.work("q", handle)
    for seconds in (1.5, 2.5, 0.15):
        boss._runtime._lags.add(seconds)
    with trio.fail_after(30):
        while True:
            if "lag" in read_info(boss.dsn):
                break
            await trio.sleep(0.05)

    assert read_info(boss.dsn)["lag"] == 2.5


async def test_a_handler_that_blocks_the_event_loop_for_less_than_a_second_is_seen_by_operators(
    boss, monkeypatch
):
    monkeypatch.setattr(lag_monitor, "_INTERVAL", 0.05)
    await boss.create_queue("q")

    async def block(job):
        while "lag" not in read_info(boss.dsn):
            block_loop(0.3)
            await trio.lowlevel.checkpoint()

    await boss.work("q", block)
    id = await boss.send("q")
    with trio.fail_after(60):
        await boss.wait_for("q", id)

    assert read_info(boss.dsn)["lag"] >= 0.1


async def test_a_worker_that_registers_while_its_boss_reconnects_is_found_by_the_new_session(boss):
    sessions = iter([11, 12, 12, 12])
    about = {"worker": uuid4(), "boss": uuid4(), "name": "worker", "queue": "q", "lock": 7, "info": "{}"}
    await boss._execute(boss._store.presence.register(lambda: next(sessions), **about))

    with psycopg.connect(boss.dsn) as connection:
        assert connection.execute("select pid from trioboss.worker").fetchall() == [(12,)]


async def test_show_names_the_worker_of_a_running_job(boss, run):
    began = trio.Event()

    async def handle(job):
        began.set()
        await trio.sleep_forever()

    worker = await boss.work("short", handle)
    id = await boss.send("short")
    with trio.fail_after(TIMEOUT):
        await began.wait()

    code, printed, _ = await trio.to_thread.run_sync(run, "show", "short", str(id))
    shown = json.loads((await trio.to_thread.run_sync(run, "show", "short", str(id), "--json"))[1])

    assert code == 0
    assert f"  worker       {platform.node()}:{os.getpid()} ({worker.id})\n" in printed
    assert shown["workers"] == {str(worker.id): f"{platform.node()}:{os.getpid()}"}
