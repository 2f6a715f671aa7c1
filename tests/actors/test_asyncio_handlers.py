"""Asyncio handlers: nothing that one of them does ends the loop in which the others run."""

import asyncio
import gc
import socket
import sys

import pytest
import trio

from trioboss.errors import UsageError

IN_REAL_TIME = True


async def fail_by(deed, work, open_worker):
    """Run a job that does that, beside one that works, and one after it; return the outcome of the first."""
    work.retries = False
    bad, good = work.send(2)

    async def handler(job):
        if job.id == bad.id:
            await asyncio.sleep(0)
            return await deed()
        await asyncio.sleep(0.05)
        return "fine"

    with trio.fail_after(30):
        async with open_worker(handler, asyncio=True, concurrency=2, grace=0) as worker:
            await work.until(lambda: len(work.outcomes) == 2)
            (later,) = work.send()
            worker.dispatchers["q"].ring()
            await work.until(lambda: len(work.outcomes) == 3)
    outcomes = {id: outcome for id, _, outcome in work.outcomes}
    assert [outcomes[good.id], outcomes[later.id]] == ['"fine"', '"fine"']
    return outcomes[bad.id]


async def leave():
    sys.exit(3)


async def interrupt():
    raise KeyboardInterrupt("not from the terminal")


async def leave_in_a_child():
    await asyncio.create_task(leave())


async def leave_in_a_group():
    async with asyncio.TaskGroup() as group:
        group.create_task(leave())


async def be_cancelled():
    raise asyncio.CancelledError


@pytest.mark.parametrize("deed", [leave, interrupt, leave_in_a_child, leave_in_a_group, be_cancelled])
async def test_an_exception_of_a_handler_is_its_own_failure(work, open_worker, deed):
    failure = await fail_by(deed, work, open_worker)

    name = {leave_in_a_group: "SystemExit", be_cancelled: "CancelledError", interrupt: "KeyboardInterrupt"}
    assert name.get(deed, "SystemExit") in failure.error


@pytest.mark.parametrize("schedule", ["call_soon", "call_later", "call_at", "call_soon_threadsafe"])
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), ValueError("lost")])
async def test_an_exception_of_a_callback_is_logged_and_affects_no_other_job(
    work, open_worker, caplog, schedule, error
):
    async def deed():
        def callback():
            raise error

        loop = asyncio.get_running_loop()
        when = {"call_later": [0.0], "call_at": [loop.time()]}.get(schedule, [])
        getattr(loop, schedule)(*when, callback)
        await asyncio.sleep(0.01)
        return "went on"

    assert await fail_by(deed, work, open_worker) == '"went on"'
    assert type(error).__name__ in caplog.text


@pytest.mark.parametrize("error", [SystemExit(3), ValueError("lost")])
async def test_an_exception_of_a_socket_callback_is_logged_and_affects_no_other_job(
    work, open_worker, caplog, error
):
    ours, theirs = socket.socketpair()

    async def deed():
        loop = asyncio.get_running_loop()

        def callback():
            loop.remove_reader(ours)
            raise error

        loop.add_reader(ours, callback)
        theirs.send(b"x")
        await asyncio.sleep(0.01)
        return "went on"

    with ours, theirs:
        assert await fail_by(deed, work, open_worker) == '"went on"'
    assert type(error).__name__ in caplog.text


async def test_a_task_that_is_never_awaited_affects_no_other_job(work, open_worker, caplog):
    async def fail():
        raise ValueError("unheard")

    async def deed():
        task = asyncio.create_task(fail())
        await asyncio.sleep(0.01)
        del task
        gc.collect()  # from Python 3.12 on the task is in a reference cycle; asyncio logs when it is deleted

    assert await fail_by(deed, work, open_worker) == "null"
    assert "unheard" in caplog.text


async def test_a_handler_cannot_stop_the_loop(work, open_worker):
    async def deed():
        asyncio.get_running_loop().stop()

    assert "cannot stop this loop" in (await fail_by(deed, work, open_worker)).error


async def test_without_trio_asyncio_the_message_names_the_other_kinds(work, open_worker, monkeypatch):
    async def handler(job):
        return await asyncio.sleep(0)

    monkeypatch.setitem(sys.modules, "trio_asyncio", None)

    with pytest.raises(
        UsageError, match=r"^asyncio=True: trio-asyncio cannot be imported here: .*thread=True"
    ):
        async with open_worker(handler, asyncio=True):
            raise AssertionError("the worker started")
