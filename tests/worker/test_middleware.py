"""Middleware: around every handler of a boss, an app or one worker."""

import contextlib
from unittest.mock import AsyncMock

import pytest
import trio
from worker_helpers import TIMEOUT, next_of

import trioboss
from trioboss.events import JobFailed


@pytest.fixture
def run(boss):
    """Run a handler on one job, and return the job when it has ended."""

    async def run(handler, data=None, retry_limit=0, **options):
        await boss.create_queue("q", retry_limit=retry_limit)
        await boss.work("q", handler, **options)
        with trio.fail_after(TIMEOUT):
            return await boss.wait_for("q", await boss.send("q", data))

    return run


def tag(name, log):
    async def middleware(job, call_next):
        log.append(name)
        try:
            return await call_next(job)
        finally:
            log.append(f"/{name}")

    return middleware


async def test_they_are_called_in_the_order_of_their_declaration(dsn):
    log = []
    app = trioboss.App(middleware=[tag("app 1", log)])
    app.use(tag("app 2", log))

    @app.worker("q", middleware=[tag("worker", log)])
    async def handle(job):
        log.append("handler")
        return job.data

    async with trioboss.open_boss(dsn, migrate=False) as boss:
        boss.use(tag("boss", log))
        await app.start(boss)
        with trio.fail_after(TIMEOUT):
            job = await boss.wait_for("q", await boss.send("q", "data"))

    assert job.output == "data"
    assert log == ["boss", "app 1", "app 2", "worker", "handler", "/worker", "/app 2", "/app 1", "/boss"]


async def test_it_can_change_the_output(run):
    async def double(job, call_next):
        return 2 * await call_next(job)

    async def handle(job):
        return job.data

    assert (await run(handle, 21, middleware=[double])).output == 42


async def test_it_can_answer_without_the_handler(run):
    async def cached(job, call_next):
        return "from the cache"

    async def handle(job):
        raise AssertionError("not called")

    assert (await run(handle, middleware=[cached])).output == "from the cache"


async def test_it_sees_the_exception_object(run):
    seen, raised = [], KeyError("mine")

    async def observe(job, call_next):
        try:
            return await call_next(job)
        except Exception as error:
            seen.append(error)
            raise

    async def handle(job):
        raise raised

    job = await run(handle, middleware=[observe])

    assert seen == [raised]
    assert job.output["name"] == "KeyError"


async def test_it_can_translate_an_exception_to_a_retry(run):
    async def retry_timeouts(job, call_next):
        try:
            return await call_next(job)
        except TimeoutError as error:
            raise job.retry(delay=0, reason="timed out") from error

    async def handle(job):
        if job.attempt == 1:
            raise TimeoutError
        return job.output["message"]

    assert (await run(handle, retry_limit=1, middleware=[retry_timeouts])).output == "timed out"


async def test_it_can_translate_an_exception_to_a_dead_letter(run):
    async def give_up(job, call_next):
        try:
            return await call_next(job)
        except ValueError as error:
            raise job.dead_letter("hopeless") from error

    async def handle(job):
        raise ValueError("the mailbox is gone")

    job = await run(handle, retry_limit=5, middleware=[give_up])

    assert (job.state, job.attempt, job.output["message"]) == ("failed", 1, "hopeless")
    assert (job.output["cause"]["name"], job.output["cause"]["message"]) == (
        "ValueError",
        "the mailbox is gone",
    )
    assert "in handle" in job.output["stack"]


async def test_it_cannot_swallow_the_cancellation(boss):
    swallowed = trio.Event()

    async def catch_all(job, call_next):
        try:
            return await call_next(job)
        except BaseException:
            swallowed.set()
            return "swallowed"

    async def handle(job):
        await trio.sleep_forever()

    await boss.create_queue("q", expire_in=0.5, retry_limit=0)
    await boss.work("q", handle, middleware=[catch_all, tag("another", [])])
    with trio.fail_after(TIMEOUT):
        job = await boss.wait_for("q", await boss.send("q"))

    assert swallowed.is_set()
    assert (job.state, job.output["message"]) == ("failed", "the job expired")


async def test_it_cannot_swallow_a_cancellation_that_arrives_in_itself_before_the_handler(boss):
    swallowed = trio.Event()

    async def wait_for_a_token(job, call_next):
        try:
            await trio.sleep_forever()
        except BaseException:
            swallowed.set()
            return "swallowed"

    await boss.create_queue("q", expire_in=0.5, retry_limit=0)
    await boss.work("q", AsyncMock(), middleware=[wait_for_a_token, tag("another", [])])
    with trio.fail_after(TIMEOUT):
        job = await boss.wait_for("q", await boss.send("q"))

    assert swallowed.is_set()
    assert (job.state, job.output["message"]) == ("failed", "the job expired")


async def test_a_handler_that_has_returned_is_completed_whatever_its_middleware_waits_for(boss):
    async def log_slowly(job, call_next):
        output = await call_next(job)
        with contextlib.suppress(trio.Cancelled):
            await trio.sleep_forever()
        return output

    async def handle(job):
        return "done"

    await boss.create_queue("q", expire_in=0.5, retry_limit=0)
    await boss.work("q", handle, middleware=[tag("another", []), log_slowly])
    with trio.fail_after(TIMEOUT):
        job = await boss.wait_for("q", await boss.send("q"))

    assert (job.state, job.output) == ("completed", "done")


async def test_a_timeout_of_its_own_is_its_own_matter(run):
    async def limit(job, call_next):
        with trio.move_on_after(0.05):
            return await call_next(job)
        return "took too long"

    async def handle(job):
        await trio.sleep_forever()

    assert (await run(handle, middleware=[limit])).output == "took too long"


async def test_a_batch_has_one_call_with_all_its_jobs(boss):
    sizes = []

    async def count(jobs, call_next):
        sizes.append(len(jobs))
        return await call_next(jobs)

    async def handle(jobs):
        return {job.id: job.data for job in jobs}

    await boss.create_queue("q")
    ids = await boss.insert("q", [{"data": n} for n in range(3)], return_ids=True)
    await boss.work("q", handle, batch_size=3, middleware=[count])
    with trio.fail_after(TIMEOUT):
        assert [(await boss.wait_for("q", id)).output for id in ids] == [0, 1, 2]
    assert sum(sizes) == 3


@pytest.mark.parametrize("kind", ["thread", "asyncio"])
async def test_it_is_around_handlers_of_every_kind(run, kind):
    async def add_one(job, call_next):
        return 1 + await call_next(job)

    async def in_asyncio(job):
        return job.data

    handler = in_asyncio if kind == "asyncio" else lambda job: job.data
    assert (await run(handler, 1, middleware=[add_one], **{kind: True})).output == 2


@pytest.mark.parametrize(
    ("middleware", "problem"),
    [
        (lambda job, call_next: None, "is not an async function"),
        (5, "5 is not an async function"),
    ],
)
async def test_a_middleware_of_another_kind_is_refused(boss, middleware, problem):
    with pytest.raises(trioboss.UsageError, match=problem):
        boss.use(middleware)
    with pytest.raises(trioboss.UsageError, match=problem):
        trioboss.App(middleware=[middleware])


async def test_a_middleware_without_a_list_around_it_is_refused(boss):
    async def alone(job, call_next):
        return await call_next(job)

    with pytest.raises(trioboss.UsageError, match=r"alone.* is not a list of functions: write middleware="):
        trioboss.App(middleware=alone)
    with pytest.raises(trioboss.UsageError, match=r"alone.* is not a list of functions: write middleware="):
        await boss.work("q", AsyncMock(), middleware=alone)


async def test_a_middleware_with_other_arguments_is_named(boss):
    async def forgetful(job):
        pass

    with pytest.raises(
        trioboss.UsageError, match=r"forgetful does not take the arguments \(job, call_next\)"
    ):
        trioboss.App().use(forgetful)


async def test_the_event_of_a_failure_carries_the_exception(boss, run):
    raised = ValueError("mine")

    async def handle(job):
        raise raised

    async with boss.events(JobFailed) as events:
        await run(handle)
        with trio.fail_after(TIMEOUT):
            event = await next_of(JobFailed, events)

    assert event.exception is raised
    assert "mine" in event.error
