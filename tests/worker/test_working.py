"""Workers of a boss on a real database: patterns, completions, starting and stopping."""

import psycopg
import pytest
import trio
from worker_helpers import TIMEOUT, next_of

import trioboss
from trioboss.machines import listening


@pytest.fixture
def done():
    """The jobs that were handled, in order."""
    return trio.open_memory_channel(100)


@pytest.fixture
def handle(done):
    async def handle(job):
        await done[0].send((job.queue, job.data))

    return handle


@pytest.fixture
def handled(done):
    """Wait for the next job that is handled."""

    async def handled():
        with trio.fail_after(TIMEOUT):
            return await done[1].receive()

    return handled


@pytest.fixture
def without_polls(monkeypatch):
    """No boss polls after its first one: a job that starts was notified of, however long that took."""
    monkeypatch.setattr(listening, "_SAFETY_INTERVAL", 3600.0)


async def test_a_pattern_takes_existing_queues_and_new_ones(boss, dsn, handle, handled):
    await boss.create_queue("mail/now")
    await boss.create_queue("other")
    await boss.work("mail/*", handle)
    await boss.send("mail/now", 1)
    assert await handled() == ("mail/now", 1)

    async with trioboss.open_boss(dsn, migrate=False, supervise=False, schedule=False) as another:
        await another.create_queue("mail/later")
        await another.send("other", "not for us")
        await another.send("mail/later", 2)

    assert await handled() == ("mail/later", 2)
    assert (await boss.get_queue_stats("other")).ready == 1


async def test_a_pattern_goes_on_after_a_queue_is_deleted(boss, handle, handled):
    await boss.create_queue("mail/gone")
    await boss.create_queue("mail/left")
    await boss.work("mail/*", handle)
    await boss.delete_queue("mail/gone")

    await boss.send("mail/left", 1)

    assert await handled() == ("mail/left", 1)


async def test_jobs_of_a_queue_that_was_recreated_start_at_once(boss, handle, handled):
    await boss.create_queue("q")
    worker = await boss.work("q", handle)
    await boss.send("q", 1)
    assert await handled() == ("q", 1)

    await boss.delete_queue("q")
    await boss.create_queue("q")
    await boss.send("q", 2)

    assert await handled() == ("q", 2)
    assert [shown.woken_by_poll for shown in worker.statistics().dispatchers] == [0]


async def test_a_deleted_queue_is_reported_once_and_its_worker_goes_on_when_it_is_created_again(
    boss, handle, handled
):
    await boss.create_queue("q")
    worker = await boss.work("q", handle)
    async with boss.events() as events:
        await boss.delete_queue("q")
        warning = await next_of(trioboss.events.QueueWarning, events)
    assert (warning.queue, warning.warning) == ("q", "queue_gone")
    assert not worker.dispatchers

    await boss.create_queue("q")
    await boss.send("q", 2)

    assert await handled() == ("q", 2)
    assert [shown.woken_by_poll for shown in worker.statistics().dispatchers] == [0]


async def test_on_complete_gets_the_document_of_each_job_that_ends(boss, done, handled):
    async def listen(job):
        await done[0].send((job.data["request"]["id"], job.data["state"], job.data["response"]))

    async def handle(job):
        if job.data == "bad":
            raise ValueError("bad")
        return {"fine": job.data}

    await boss.create_queue("q", retry_limit=0)
    await boss.on_complete("q", listen)
    await boss.work("q", handle)

    good = await boss.send("q", 1)
    assert await handled() == (str(good), "completed", {"fine": 1})
    bad = await boss.send("q", "bad")
    id, state, response = await handled()
    assert (id, state) == (str(bad), "failed")
    assert "bad" in str(response)


async def test_after_off_complete_completions_can_be_fetched(boss, handle, handled):
    await boss.create_queue("q")
    await boss.on_complete("q", handle)
    await boss.off_complete("q")
    id = await boss.send("q", 1)
    await boss.complete("q", (await boss.fetch("q"))[0])

    (completion,) = await boss.fetch_completed("q")

    assert completion.data["request"]["id"] == str(id)


async def test_off_work_waits_for_running_jobs_and_claims_no_more(boss, dsn):
    began, ended = trio.Event(), []

    async def handle(job):
        began.set()
        await trio.sleep(0.2)
        ended.append(job.data)

    await boss.create_queue("q")
    await boss.work("q", handle)
    await boss.send("q", 1)
    await began.wait()

    await boss.off_work("q")

    assert ended == [1]
    await boss.send("q", 2)
    assert (await boss.get_queue_stats("q")).ready == 1
    assert boss.statistics().workers == ()


async def test_stopping_the_workers_of_an_unknown_queue_is_refused(boss, handle):
    with pytest.raises(trioboss.UnknownQueue, match="'missing' does not exist"):
        await boss.off_work("missing")
    with pytest.raises(trioboss.UnknownQueue, match="'missing' does not exist"):
        await boss.off_complete("missing")

    await boss.create_queue("q")
    worker = await boss.work("q", handle)
    await boss.off_work(worker)
    for stopped in ("q", worker, worker.id, "missing-*"):
        await boss.off_work(stopped)
    await boss.off_complete("q")


async def test_off_work_stops_the_worker_that_is_named_and_no_other(boss, handle, handled):
    await boss.create_queue("q")
    first = await boss.work("q", handle)
    second = await boss.work("q", handle)

    await boss.off_work(first)

    assert [worker.id for worker in boss.statistics().workers] == [second.id]
    await boss.send("q", 1)
    assert await handled() == ("q", 1)


@pytest.mark.usefixtures("without_polls")
async def test_notify_worker_makes_it_claim_now(boss, dsn, handle, handled):
    await boss.create_queue("q")
    worker = await boss.work("q", handle)
    with trio.fail_after(TIMEOUT):
        while not worker.dispatchers["q"].machine.has_marker:  # noqa: ASYNC110 (it has no event)
            await trio.sleep(0.01)
    with psycopg.connect(dsn, autocommit=True) as connection:
        # Without the idle marker the sender does not notify.
        connection.execute("DELETE FROM trioboss.idle_dispatcher")
    await boss.send("q", 1)

    boss.notify_worker(worker)

    assert await handled() == ("q", 1)


async def test_statistics_show_all_actors(boss, handle, handled):
    await boss.create_queue("q")
    await boss.work("q", handle)
    await boss.send("q", 1)
    await handled()

    shown = boss.statistics()

    assert set(shown.supervisor.actors) >= {"listener", "maintenance", "scheduler", "queue list"}
    assert shown.listener.listening
    (worker,) = shown.workers
    (dispatcher,) = worker.dispatchers
    assert (dispatcher.queue, dispatcher.claimed) == ("q", 1)
    assert shown.maintenance is not None
    assert shown.scheduler is not None


@pytest.mark.usefixtures("without_polls")
async def test_a_job_sent_by_plain_sql_starts_by_a_notification(boss, dsn, handle, handled):
    await boss.create_queue("q")
    await boss.work("q", handle)
    with psycopg.connect(dsn) as connection:
        connection.execute("INSERT INTO trioboss.job (name, data) VALUES ('q', '5')")

    assert await handled() == ("q", 5)


async def test_a_deferred_job_starts_by_a_timer_and_no_poll(boss, handle, handled):
    await boss.create_queue("q")
    await boss.work("q", handle)
    await boss.send("q", 1, start_after=0.5)

    assert await handled() == ("q", 1)
    assert boss.statistics().workers[0].dispatchers[0].woken_by_timer >= 1


async def test_a_handler_that_does_not_touch_without_auto_heartbeat_has_failed(boss):
    reasons = trio.open_memory_channel(1)

    async def forget(job):
        try:
            await trio.sleep_forever()
        finally:
            reasons[0].send_nowait(job.cancelled)

    await boss.create_queue("q", heartbeat=1, auto_heartbeat=False, retry_limit=0)
    await boss.work("q", forget)
    id = await boss.send("q")

    with trio.fail_after(TIMEOUT):
        assert await reasons[1].receive() == "expired"
        assert (await boss.wait_for("q", id)).state == "failed"


async def test_with_a_monitor_interval_events_count_jobs_by_state(boss, dsn):
    await boss.create_queue("q")
    await boss.insert("q", [{}, {}, {"start_after": 60}])
    await boss.complete("q", (await boss.fetch("q"))[0])
    async with (
        trioboss.open_boss(dsn, migrate=False, monitor_interval=1) as watching,
        watching.events() as events,
    ):
        told = [await next_of(trioboss.events.MonitorStates, events) for _ in range(2)]

    counts = {"created": 2, "retry": 0, "active": 0, "completed": 1, "cancelled": 0, "failed": 0, "all": 3}
    assert [event.queues["q"] for event in told] == [counts] * 2


async def test_hundreds_of_idle_queues_cost_no_claim_and_each_is_notified(boss, handle, handled):
    async with boss.transaction() as conn:
        for number in range(300):
            await boss.create_queue(f"many/{number}", conn=conn)
    await boss.send("many/7", "before")
    worker = await boss.work("many/*", handle)
    await boss.send("many/299", "after")

    assert {await handled(), await handled()} == {("many/7", "before"), ("many/299", "after")}
    asked = {shown.queue for shown in worker.statistics().dispatchers if shown.claims}
    assert len(worker.dispatchers) == 300
    assert asked == {"many/7", "many/299"}


async def test_many_jobs_are_run_once_each_by_a_worker_with_prefetch(boss):
    """Large settlements and large claims are executed in parallel; jobs that fail once are retried."""
    count = 3_000
    seen: list[tuple[int, int]] = []
    over = trio.Event()

    async def handle(job):
        seen.append((job.data, job.attempt))
        if job.data % 500 == 0 and job.attempt == 1:
            raise ValueError("once more")
        if len(seen) == count + count // 500:
            over.set()

    await boss.create_queue("q")
    await boss.insert("q", [{"data": number} for number in range(count)])
    worker = await boss.work("q", handle, concurrency=5, prefetch=1_000)
    with trio.fail_after(TIMEOUT):
        await over.wait()
    await boss.off_work(worker)

    again = [(number, 2) for number in range(0, count, 500)]
    assert sorted(seen) == sorted([*((number, 1) for number in range(count)), *again])
    stats = await boss.get_queue_stats("q")
    assert (stats.ready, stats.active, stats.completed) == (0, 0, count)
