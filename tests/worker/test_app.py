"""App: workers and schedules that are declared beside their handlers, and started on a boss."""

import pytest
import trio
from worker_helpers import TIMEOUT, next_of

import trioboss


@pytest.fixture
def app():
    return trioboss.App()


def declare(app, queue, **options):
    """An app with a worker that returns the data of its job."""

    @app.worker(queue, **options)
    async def handle(job):
        return job.data

    return handle


async def test_its_queue_options_create_the_queue(app, boss):
    declare(app, "email", concurrency=20, retry_limit=7, retry_backoff=True)

    await app.start(boss)

    queue = await boss.get_queue("email")
    assert (queue.retry_limit, queue.retry_backoff) == (7, True)
    (worker,) = boss.statistics().workers
    assert worker.queue == "email"


async def test_a_policy_that_is_not_that_of_the_queue_is_named_with_it(app, boss):
    await boss.create_queue("email")
    declare(app, "email", policy="short")

    with pytest.raises(trioboss.QueueExists, match=r"'email'.*policy.*cannot be changed"):
        await app.start(boss)


async def test_declared_options_are_changed_and_others_stay(app, boss):
    declare(app, "email", retry_limit=1)
    await app.start(boss)
    await boss.update_queue("email", expire_in=77)
    later = trioboss.App()
    declare(later, "email", retry_limit=7)

    await later.start(boss)

    queue = await boss.get_queue("email")
    assert (queue.retry_limit, queue.expire_in) == (7, 77)


async def test_a_queue_that_somebody_else_made_is_not_changed(app, boss, caplog):
    await boss.create_queue("email", retry_limit=1)
    declare(app, "email", retry_limit=7)

    await app.start(boss)

    assert (await boss.get_queue("email")).retry_limit == 1
    (warning,) = [record.getMessage() for record in caplog.records if record.name == "trioboss.app"]
    assert "leave queue 'email': it is not declared by an app, and it differs: retry_limit 1 → 7" in warning
    assert "trioboss migrate test_app --adopt" in warning


async def test_a_schedule_that_is_as_declared_is_not_replaced(app, boss):
    app.schedule("0 3 * * *", data={"a": [1]}, missed="latest", priority=3)(declare(app, "nightly"))
    await app.start(boss)
    (first,) = await boss.get_schedules()

    await app.start(boss)

    (second,) = await boss.get_schedules()
    assert second == first


async def test_it_can_be_started_twice(app, boss, dsn):
    declare(app, "email", retry_limit=7)
    app.schedule("0 3 * * *")(app.workers[0].handler)
    await app.start(boss)

    async with trioboss.open_boss(dsn, migrate=False, app=app) as another:
        assert len(another.statistics().workers) == 1
        assert len(await another.get_schedules()) == 1


async def test_a_boss_that_is_opened_with_it_runs_it(app, dsn):
    declare(app, "email")

    async with trioboss.open_boss(dsn, migrate=False, app=app) as boss:
        id = await boss.send("email", 5)
        with trio.fail_after(TIMEOUT):
            assert (await boss.wait_for("email", id)).output == 5


async def test_only_some_queues_and_another_concurrency(app, boss):
    declare(app, "email", concurrency=20)
    declare(app, "other")

    await app.start(boss, queues=["email"], concurrency=3)

    (worker,) = boss._runtime.router.workers.values()
    assert (worker.settings.queue, worker.settings.slots.concurrency) == ("email", 3)
    assert await boss.get_queue("other") is not None


async def test_a_pattern_creates_no_queue(app, boss):
    declare(app, "mail/*")

    await app.start(boss)

    assert not [queue for queue in await boss.get_queues() if "mail" in queue.name]


async def test_a_schedule_is_for_the_queue_below_it(app, boss):
    app.schedule("0 3 * * *", tz="Europe/Berlin", key="k", data=[1])(declare(app, "nightly"))

    await app.start(boss)

    (schedule,) = await boss.get_schedules()
    assert (schedule.queue, schedule.cron, schedule.timezone, schedule.data) == (
        "nightly",
        "0 3 * * *",
        "Europe/Berlin",
        [1],
    )


@pytest.mark.parametrize("label", ["", 5])
def test_a_label_that_is_none_is_refused(label):
    with pytest.raises(trioboss.UsageError, match=f"label: {label!r} is not a label"):
        trioboss.App(label=label)


def test_a_schedule_without_a_worker_is_refused(app):
    with pytest.raises(trioboss.UsageError, match=r"put @app\.schedule above @app\.worker"):
        app.schedule("0 3 * * *")(lambda job: None)


def test_an_unknown_option_is_refused_where_it_is_written(app):
    with pytest.raises(TypeError, match="unexpected option 'colour'"):
        app.worker("email", colour="blue")


def test_a_bad_queue_option_is_refused_where_it_is_written(app):
    with pytest.raises(trioboss.UsageError, match="retry_limit"):
        app.worker("email", retry_limit=-1)


# -- the options of `boss.work`


async def test_only_jobs_of_some_priorities(boss):
    done = []

    async def handle(job):
        done.append(job.data)

    await boss.create_queue("q")
    for priority in (1, 5, 9):
        await boss.send("q", priority, priority=priority)
    await boss.work("q", handle, min_priority=5, max_priority=5)
    last = await boss.send("q", "last", priority=5)

    with trio.fail_after(TIMEOUT):
        await boss.wait_for("q", last)
    assert done == [5, "last"]


@pytest.mark.parametrize("kind", ["thread", "asyncio"])
async def test_handlers_in_threads_and_of_asyncio(boss, kind):
    import asyncio

    async def in_asyncio(job):
        await asyncio.sleep(0)
        return job.data + 1

    handler = in_asyncio if kind == "asyncio" else lambda job: job.data + 1
    await boss.create_queue("q")
    await boss.work("q", handler, **{kind: True})
    id = await boss.send("q", 1)

    with trio.fail_after(TIMEOUT):
        assert (await boss.wait_for("q", id)).output == 2


async def test_a_batch_with_results_of_its_own_for_each(boss):
    async def handle(jobs):
        raise trioboss.BatchFailed({job.id: "bad" for job in jobs if job.data == "bad"})

    await boss.create_queue("q", retry_limit=0)
    good, bad = await boss.send("q", "good"), await boss.send("q", "bad")
    await boss.work("q", handle, batch_size=10)

    with trio.fail_after(TIMEOUT):
        assert (await boss.wait_for("q", good)).state == "completed"
        assert (await boss.wait_for("q", bad)).state == "failed"


async def test_stop_ends_the_block_gracefully(dsn):
    ended = []
    with trio.fail_after(TIMEOUT):
        async with trioboss.open_boss(dsn, migrate=False) as boss:
            began = trio.Event()

            async def handle(job):
                began.set()
                await trio.sleep(0.2)
                ended.append(job.data)

            await boss.create_queue("q")
            await boss.work("q", handle)
            await boss.send("q", 1)
            await began.wait()
            boss.stop()
            await trio.sleep_forever()
    assert ended == [1]


async def test_the_last_event_is_stopped(dsn):
    async with trioboss.open_boss(dsn, migrate=False) as boss:
        stream = boss.events()
        events = await stream.__aenter__()
        await boss.create_queue("q")

        async def handle(job):
            return None

        await boss.work("q", handle)
        id = await boss.send("q")
        await boss.wait_for("q", id)
    with trio.fail_after(TIMEOUT):
        seen = [type(event).__name__ async for event in events]
    await stream.__aexit__(None, None, None)
    assert seen[-1] == "Stopped"
    assert {"JobStarted", "JobCompleted"} <= set(seen)


async def test_work_in_progress_is_reported_while_it_changes(boss):
    async def handle(job):
        await trio.sleep_forever()

    await boss.create_queue("q")
    worker = await boss.work("q", handle)
    await boss.send("q")
    async with boss.events() as events:
        told = await next_of(trioboss.events.Wip, events)

    (wip,) = told.workers
    assert (wip.id, wip.queue) == (worker.id, "q")
    await boss.off_work(worker, grace=0)
