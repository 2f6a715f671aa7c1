"""The objects that a handler reaches through its job: the boss, and the context of a lifespan."""

from contextlib import asynccontextmanager

import pytest
import trio
from worker_helpers import TIMEOUT

import trioboss

# -- the boss


async def test_a_handler_sends_a_follow_up_with_the_boss_that_runs_it(boss, run_job):
    async def handle(job):
        assert job.boss is boss
        return str(await job.boss.send("short", job.data))

    job, _ = await run_job(handle)

    assert (await boss.get_job_by_id("short", job.output)).data == "input"


@pytest.mark.parametrize("kind", ["thread", "asyncio"])
async def test_handlers_of_other_kinds_have_the_boss_and_the_context(boss, run_job, kind):
    def in_thread(job):
        return [job.boss is boss, job.context, job.attempt, job.data]

    async def in_asyncio(job):
        await job.touch()
        return in_thread(job)

    @asynccontextmanager
    async def lifespan(boss):
        yield "context"

    handler = in_thread if kind == "thread" else in_asyncio
    job, _ = await run_job(handler, lifespan=lifespan, **{kind: True})

    assert job.output == [True, "context", 1, "input"]


async def test_a_coroutine_that_a_function_in_a_thread_returns_fails_the_job_with_the_reason(run_job):
    async def handle(job):
        raise AssertionError("nobody awaits it")

    job, _ = await run_job(lambda job: handle(job), thread=True)

    assert job.state == "failed"
    assert "handle is an async function behind a plain one" in job.output["message"]


async def test_a_job_has_the_attributes_of_the_claimed_one_and_no_others(run_job):
    async def handle(job):
        names = [
            "priority",
            "retry_limit",
            "expire_in",
            "created_on",
            "policy",
            "worker",
            "seq",
            "lease",
            "state",
        ]
        assert [getattr(job, name) for name in names] == [getattr(job.job, name) for name in names]
        with pytest.raises(AttributeError):
            job.colour  # noqa: B018

    job, _ = await run_job(handle)

    assert job.state == "completed"


# -- lifespans


def logging_lifespan(log, name="context"):
    @asynccontextmanager
    async def lifespan(boss):
        log.append("entered")
        try:
            yield name
        finally:
            await trio.lowlevel.checkpoint()
            log.append("left")

    return lifespan


async def test_the_lifespan_of_a_worker_is_the_context_of_its_jobs(boss, run_job):
    log = []

    async def handle(job):
        log.append("job")
        return job.context

    job, _ = await run_job(handle, lifespan=logging_lifespan(log))

    assert job.output == "context"
    assert log == ["entered", "job", "left"]


class Cache:
    """A context manager that is a class, as those of many libraries."""

    async def __aenter__(self):
        return "a cache"

    async def __aexit__(self, *error):
        pass


@asynccontextmanager
async def without_arguments():
    yield "a cache"


@pytest.mark.parametrize("make", [lambda: Cache, Cache, lambda: without_arguments, without_arguments])
async def test_a_lifespan_is_a_manager_or_makes_one(run_job, make):
    async def handle(job):
        return job.context

    job, _ = await run_job(handle, lifespan=make())

    assert job.output == "a cache"


async def test_all_workers_of_an_app_share_one_lifespan(dsn):
    log, contexts = [], []
    app = trioboss.App(lifespan=logging_lifespan(log, name=object()))

    @app.worker("a")
    @app.worker("b")
    async def handle(job):
        contexts.append(job.context)

    async with trioboss.open_boss(dsn, migrate=False, app=app) as boss:
        ids = {queue: await boss.send(queue) for queue in ("a", "b")}
        with trio.fail_after(TIMEOUT):
            for queue, id in ids.items():
                await boss.wait_for(queue, id)
        assert log == ["entered"]
    assert log == ["entered", "left"]
    assert len(contexts) == 2
    assert contexts[0] is contexts[1] is not None


async def test_a_lifespan_is_left_after_the_last_job_has_ended(dsn):
    log = []
    app = trioboss.App(lifespan=logging_lifespan(log))
    started = trio.Event()

    @app.worker("a")
    async def handle(job):
        started.set()
        await trio.sleep(0.3)
        log.append(f"job with {job.context}")

    async with trioboss.open_boss(dsn, migrate=False, app=app) as boss:
        await boss.send("a")
        with trio.fail_after(TIMEOUT):
            await started.wait()
    assert log == ["entered", "job with context", "left"]


async def test_a_lifespan_can_use_the_boss_at_its_end(dsn):
    @asynccontextmanager
    async def lifespan(boss):
        await boss.create_queue("goodbye")
        yield
        await boss.send("goodbye")

    async with trioboss.open_boss(dsn, migrate=False, app=trioboss.App(lifespan=lifespan)) as boss:
        pass

    with trioboss.SyncBoss(dsn, migrate=False) as boss:
        assert boss.get_queue_size("goodbye") == 1


async def test_a_lifespan_that_fails_to_start_fails_the_start(dsn):
    @asynccontextmanager
    async def lifespan():
        raise ConnectionRefusedError("no cache server")
        yield

    with pytest.raises(ConnectionRefusedError, match="no cache server"):
        async with trioboss.open_boss(dsn, migrate=False, app=trioboss.App(lifespan=lifespan)):
            raise AssertionError("not reached")


async def test_a_lifespan_that_is_no_context_manager_is_named(boss):
    async def forgot_the_decorator(boss):
        yield

    async def handle(job):
        pass

    await boss.create_queue("q")
    with pytest.raises(trioboss.UsageError, match=r"forgot_the_decorator .*asynccontextmanager"):
        await boss.work("q", handle, lifespan=forgot_the_decorator)


# -- in a process of its own


async def test_a_worker_process_has_all_of_it(boss, workers):
    worker = await workers.start(app="handler_app:app")
    await worker.prints("lifespan entered")
    id = await boss.send("orders", {"number": 7})
    bad = await boss.send("orders", {"number": "seven"})
    with trio.fail_after(TIMEOUT):
        job = await boss.wait_for("orders", id)
        refused = await boss.wait_for("orders", bad)
    await worker.prints("order 7 context")
    running = await boss.send("orders", {"number": 8, "seconds": 1})
    await worker.prints("order 8 context")
    worker.signal()

    assert await worker.ends() == 0
    assert job.state == "completed"
    assert (refused.state, refused.attempt, refused.output["path"]) == ("failed", 1, "data.number")
    assert (await boss.get_job_by_id("orders", running)).state == "completed"
    lines = [line for line in worker.lines if line.startswith(("lifespan", "before", "after", "order "))]
    assert lines[-2:] == ["after orders None", "lifespan left"]
    assert (await boss.get_queue_stats("short")).ready == 2
    async with boss.transaction() as conn:
        rows = await (await conn.execute("SELECT number FROM parcel ORDER BY number")).fetchall()
    assert rows == [(7,), (8,)]
