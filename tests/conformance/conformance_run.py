"""One run of two bosses, with workers for everything that rows say about workers; the rows check what was seen."""

from collections import Counter
from contextlib import suppress
from typing import Any
from uuid import UUID

import attrs
import trio

import trioboss
from trioboss import events

LIMIT = 120  # seconds for the whole run, which takes about five


@attrs.define
class Seen:
    """The recorded events."""

    events: list[trioboss.Event] = attrs.field(factory=list)
    elsewhere: list[trioboss.Event] = attrs.field(factory=list)
    """Events of the other boss."""
    runs: Counter[str] = attrs.field(factory=Counter)
    """Calls of handlers by queue."""
    peak: Counter[str] = attrs.field(factory=Counter)
    """How many ran at once, by queue."""
    values: dict[str, Any] = attrs.field(factory=dict)
    """Everything else, by name."""

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]


async def observe(dsn: str) -> Seen:
    """Run everything, and return what was seen."""
    seen = Seen()
    options = {"monitor_interval": 1, "warning_interval": 0.1, "migrate": False, "grace": 20}
    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as readers, trioboss.open_boss(dsn, **options) as boss:
            await readers.start(_collect, boss, seen.events)
            async with trioboss.open_boss(dsn, migrate=False) as other:
                await readers.start(_collect, other, seen.elsewhere)
                async with trio.open_nursery() as parts:
                    for part in PARTS:
                        parts.start_soon(part, boss, other, seen)
                await _until(lambda: _is_reported(seen))
                seen.values["off"] = await boss.get_job_by_id("one", seen.values["off"])
                seen.values["pools"] = boss.statistics().pools
            await _stop(boss, seen)
    seen.values["ended"] = boss.has_ended
    return seen


async def _collect(
    boss: trioboss.Boss, into: list[trioboss.Event], *, task_status: trio.TaskStatus[None]
) -> None:
    async with boss.events() as stream:
        task_status.started()
        async for event in stream:
            into += [event]


def _is_reported(seen: Seen) -> bool:
    """Whether the last reports were made after everything else."""
    states, wip = seen.of(events.MonitorStates), seen.of(events.Wip)
    workers = {worker.queue: worker for worker in wip[-1].workers} if wip else {}
    counted = states[-1].queues.get("long", {}).get("created") if states else 0
    return counted == 3 and "outcomes" in workers and workers["outcomes"].last_error is not None


async def _until(condition: Any) -> None:
    while not condition():  # noqa: ASYNC110  # many conditions, of which few have an event
        await trio.sleep(0.01)


def _handler(seen: Seen, body: Any = None) -> Any:
    """A handler that counts its calls."""
    running: Counter[str] = Counter()

    async def handle(job: Any) -> Any:
        seen.runs[job.queue] += 1
        running[job.queue] += 1
        seen.peak[job.queue] = max(seen.peak[job.queue], running[job.queue])
        try:
            return None if body is None else await body(job)
        finally:
            running[job.queue] -= 1

    return handle


async def _ended(boss: trioboss.Boss, queue: str, data: Any = None, **options: Any) -> trioboss.Job:
    """Send a job and return it when it has ended."""
    return await boss.wait_for(queue, await boss.send(queue, data, **options))


async def outcomes(boss: trioboss.Boss, other: trioboss.Boss, seen: Seen) -> None:
    """Outputs, failures, retries, dead letters, and what is told about them."""

    async def body(job: Any) -> Any:
        if job.data == "fail":
            raise ValueError("no luck")
        if job.data == "dead":
            raise job.dead_letter("hopeless")
        if job.data == "complete":
            await job.complete({"p": 1})
            return "ignored"
        if job.data == "again" and job.attempt == 1:
            raise job.retry(delay=0.05, reason="later")
        return {"ret": job.data}

    completions: list[Any] = []

    async def completed(job: Any) -> None:
        completions.append(job.data)

    await boss.create_queue("dead-letters")
    await boss.create_queue("outcomes", dead_letter="dead-letters")
    worker = await boss.on_complete("outcomes", completed)
    await boss.work("outcomes", _handler(seen, body), concurrency=4)
    for data in ("fine", "fail", "dead", "complete", "again"):
        seen.values[data] = await _ended(boss, "outcomes", data)
    await _until(lambda: len(completions) == 5)
    seen.values["completions"] = {entry["request"]["data"]: entry for entry in completions}
    seen.values["completion worker"] = worker.settings.queue
    await boss.off_complete("outcomes")
    try:
        await boss.send("nowhere")
    except trioboss.UnknownQueue as error:
        seen.values["refused"] = error
    seen.values["letters"] = await boss.find_jobs("dead-letters")


async def many(boss: trioboss.Boss, other: trioboss.Boss, seen: Seen) -> None:
    """Concurrency, refilling, batches, patterns, several instances."""

    async def slow(job: Any) -> None:
        await trio.sleep(0.3 if job.data == 0 else 0.01)

    for name in ("one", "five", "batches", "report-a", "report-b-5", "both"):
        await boss.create_queue(name)
    worker = await boss.work("one", _handler(seen, slow))
    await boss.work("five", _handler(seen, slow), concurrency=5)
    sizes: list[int] = []

    async def batch(jobs: Any) -> None:
        sizes.append(len(jobs))

    await boss.insert("batches", [{"data": n} for n in range(12)])
    await boss.work("batches", batch, batch_size=5)
    reports = await boss.work("report-*5", _handler(seen))
    await boss.create_queue("report-c5")

    async def short(job: Any) -> None:
        await trio.sleep(0.02)  # slow enough that neither boss does all

    for each in (boss, other):
        await each.work("both", _handler(seen, short), concurrency=3)
    await boss.insert("five", [{"data": n} for n in range(10)])
    await boss.insert("one", [{"data": n} for n in range(1, 4)])
    await boss.insert("both", [{"data": n} for n in range(100)])
    for name in ("report-a", "report-b-5", "report-c5"):
        await boss.send(name)
    await _until(lambda: seen.runs["five"] == 10 and seen.runs["one"] == 3 and sum(sizes) == 12)
    await _until(lambda: seen.runs["report-b-5"] + seen.runs["report-c5"] == 2 and seen.runs["both"] >= 100)
    seen.values["sizes"] = sizes
    seen.values["dispatchers"] = [each.queue for each in reports.statistics().dispatchers]
    await off(boss, seen, worker)


async def ahead(boss: trioboss.Boss, other: trioboss.Boss, seen: Seen) -> None:
    """Jobs that are leased ahead of their start; slots that are refilled one by one."""
    last_ended = trio.Event()

    async def count_leased(job: Any) -> None:
        seen.values.setdefault("leased", (await boss.get_queue_stats("ahead")).active)

    async def refilled(job: Any) -> None:
        if job.data == "first":
            await last_ended.wait()  # which begins only in a slot that is free while this job runs
            seen.values["refilled"] = True
        elif job.data == "last":
            last_ended.set()

    await boss.create_queue("ahead")
    await boss.insert("ahead", [{} for _ in range(6)])
    await boss.work("ahead", _handler(seen, count_leased), prefetch=3)
    await boss.create_queue("refill")
    await boss.insert("refill", [{"data": data} for data in ("first", "a", "b", "c", "last")])
    await boss.work("refill", _handler(seen, refilled), concurrency=2)
    await _until(lambda: seen.runs["ahead"] == 6 and "refilled" in seen.values)


async def off(boss: trioboss.Boss, seen: Seen, worker: trioboss.Worker) -> None:
    """Workers that are notified by themselves and by id; and that are stopped by name, by themselves and by id."""
    for notified in (worker, worker.id):
        woken = worker.statistics().dispatchers[0].woken_by_notify
        boss.notify_worker(notified)
        await _until(lambda woken=woken: worker.statistics().dispatchers[0].woken_by_notify > woken)
    await boss.off_work("one")
    for which in (lambda worker: worker, lambda worker: worker.id):
        again = await boss.work("one", _handler(seen))
        await boss.off_work(which(again))
    seen.values["off"] = await boss.send("one")


async def leases(boss: trioboss.Boss, other: trioboss.Boss, seen: Seen) -> None:
    """Heartbeats, expiry, extensions, cancellations."""
    reasons: dict[str, Any] = {}

    async def body(job: Any) -> None:
        try:
            if job.data == "extend":
                for _ in range(4):
                    await job.extend(2)
            elif job.data == "touch":
                for _ in range(5):
                    await job.touch()
                    await trio.sleep(0.3)
                return
            await trio.sleep(30)
        except trio.Cancelled:
            reasons[job.data] = job.cancelled
            raise
        except trioboss.UsageError as error:
            reasons[job.data] = error
            raise

    queues = {
        "expiring": {"expire_in": 0.3, "retry_limit": 1, "heartbeat": 1},
        "silent": {"heartbeat": 1, "auto_heartbeat": False, "retry_limit": 0},
        "beating": {"heartbeat": 1},
        "extending": {"expire_in": 20, "retry_limit": 0},
    }
    for name, options in queues.items():
        await boss.create_queue(name, **options)
        await boss.work(name, _handler(seen, body), concurrency=2)
    await boss.fetch_completed("expiring")  # from now on there is a completion job for each job that ends
    seen.values["expired"] = await _ended(boss, "expiring", "expire")
    seen.values["expiry"] = (await boss.fetch_completed("expiring"))[0].data
    seen.values["extended"] = await _ended(boss, "extending", "extend")
    beating = await boss.send("beating", "beat")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_keep, seen, "touched", boss, "silent", "touch")
        nursery.start_soon(_keep, seen, "silent", boss, "silent", "silence")
    job = await boss.get_job_by_id("beating", beating)
    while job is None or job.heartbeat_on is None:
        await trio.sleep(0.1)
        job = await boss.get_job_by_id("beating", beating)
    seen.values["beat"] = job
    await other.cancel("beating", beating)
    await _until(lambda: "beat" in reasons)
    seen.values["reasons"] = reasons


async def _keep(seen: Seen, name: str, boss: trioboss.Boss, queue: str, data: str) -> None:
    seen.values[name] = await _ended(boss, queue, data)


async def manually(boss: trioboss.Boss, other: trioboss.Boss, seen: Seen) -> None:
    """Jobs that were fetched manually and are forgotten; queues that are too long; what retention deletes."""
    await boss.create_queue("forgotten", expire_in=0.2, retry_limit=0)
    await boss.create_queue("silent-fetch", heartbeat=1, retry_limit=1, retry_delay=60)
    await boss.create_queue("long", warning_queue_size=2)
    await boss.create_queue("old", retention=0.05)
    await boss.insert("long", [{} for _ in range(3)])
    await boss.send("old")
    forgotten = await boss.send("forgotten")
    silent = await boss.send("silent-fetch")
    await boss.fetch("forgotten")
    await boss.fetch("silent-fetch")
    seen.values["forgotten"] = await boss.wait_for("forgotten", forgotten)
    await _until(lambda: any(event.queue == "long" for event in seen.of(events.QueueWarning)))
    await boss.maintain("old")
    seen.values["old"] = await boss.find_jobs("old")
    state = ""
    while state != "retry":
        await trio.sleep(0.1)
        state = (await boss.get_job_by_id("silent-fetch", silent)).state
    seen.values["silent fetch"] = state


async def cron(boss: trioboss.Boss, other: trioboss.Boss, seen: Seen) -> None:
    """Schedules: two bosses fire every tick once."""
    await boss.create_queue("ticks")
    await boss.schedule("ticks", "* * * * * *", {"by": "cron"})
    await boss.schedule("ticks", "FREQ=SECONDLY", {"by": "rule"}, key="rule")
    with suppress(trio.TooSlowError):
        await _until(
            lambda: sum(isinstance(event, events.TickFired) for event in [*seen.events, *seen.elsewhere]) >= 4
        )
    await boss.unschedule("ticks")
    await boss.unschedule("ticks", "rule")
    seen.values["ticks"] = await boss.find_jobs("ticks")


async def waking(boss: trioboss.Boss, other: trioboss.Boss, seen: Seen) -> None:
    """Plain SQL wakes workers; deferred jobs start in time; a listener that is notified claims."""
    await boss.create_queue("plain-sql")
    worker = await boss.work("plain-sql", _handler(seen))
    async with other.transaction() as conn:
        await conn.execute("insert into trioboss.job (name) values ('plain-sql')")
        async with conn.cursor().copy("copy trioboss.job (name) from stdin") as copy:
            await copy.write_row(("plain-sql",))
    await boss.send_after("plain-sql", None, 0.1)
    await _until(lambda: seen.runs["plain-sql"] == 3)
    seen.values["waking"] = worker.statistics()


async def _stop(boss: trioboss.Boss, seen: Seen) -> None:
    """A graceful stop: the running job ends, and the call returns at once."""
    started = trio.Event()

    async def body(job: Any) -> str:
        started.set()
        await trio.sleep(0.2)
        return "finished"

    await boss.create_queue("last")
    await boss.work("last", _handler(seen, body))
    id: UUID | None = await boss.send("last")
    await started.wait()
    seen.values["last"] = id
    boss.stop()
    seen.values["stop returned"] = True


PARTS = (outcomes, many, ahead, leases, manually, cron, waking)
