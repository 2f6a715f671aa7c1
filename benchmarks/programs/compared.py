"""One measurement of `benchmarks compare`, on whichever checkout of trioboss the interpreter imports.

Only the public API is used here (open_boss, create_queue, send, insert, work, off_work, fetch, complete), so that any
two checkouts can be compared, whatever their tables look like. The roles:

    fill      install the schema, create the queue, and put it into a state (`Step`)
    drain     handle all queued jobs
    refill    insert a few jobs, handle them, and so on: for policies that allow only one queued job for each key
    bulk      insert many jobs by one call
    send      send jobs one by one, from several tasks
    claim     time each claim of 10 jobs
    produce   send a job each 20 ms; another process handles them
    work      handle them, and record the time from the call of send

Each role but `fill` emits `ready` and waits for a command before it begins, so that the harness can read its meters. It
emits `done` and waits again.
"""

import platform
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import trio

import trioboss
from benchmarks.programs.protocol import Spec, emit, now, read_spec

__all__ = ["QUEUE"]

QUEUE = "compared"
_WARM_UP = "warm-up"
_WARM_UP_JOBS = 500
_BATCH = 10  # jobs of a claim
_INTERVAL = 0.02  # seconds between the sends of `produce`
_UNUSED_PRIORITY = 2**31 - 1
_ADMITTED_AT_ONCE = 50_000
_PACKAGE = str(Path(str(trioboss.__file__)).resolve().parent)
_VERSIONS = {"python": platform.python_version(), "psycopg": version("psycopg"), "trio": version("trio")}


async def _wait_for_command() -> None:
    await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)


async def _measured(body: Callable[[], Awaitable[dict[str, Any]]]) -> None:
    """Run the measured part between two commands of the harness."""
    emit("ready")
    await _wait_for_command()
    began = now()
    result = await body()
    emit("done", seconds=now() - began, **result)
    await _wait_for_command()


def _rows(count: int, keys: int, prefix: str = "") -> Iterator[dict[str, Any]]:
    """Yield jobs; with `keys`, job i has the key i modulo `keys`."""
    for i in range(count):
        key = {"singleton_key": f"{prefix}{i % keys}"} if keys else {}
        yield {"data": {"i": i, "t": 0}, **key}


@asynccontextmanager
async def _open_client(spec: Spec, connections: int = 1) -> AsyncIterator[trioboss.Boss]:
    """Open a boss that does neither maintenance nor cron."""
    async with trioboss.open_boss(
        spec["dsn"], migrate=False, supervise=False, schedule=False, pool_size=connections
    ) as boss:
        yield boss


# -- filling


async def fill(spec: Spec) -> None:
    """Install the schema, create the queue, and do the steps of the specification."""
    async with trioboss.open_boss(spec["dsn"]) as boss:
        for name in (QUEUE, _WARM_UP):
            await boss.create_queue(name, **spec["options"])
        for step in spec["steps"]:
            if step["do"] == "insert":
                await boss.insert(QUEUE, _rows(step["jobs"], step["keys"], step.get("prefix", "")))
            elif step["do"] == "claim":
                claimed = await boss.fetch(QUEUE, batch_size=step["jobs"])
                assert len(claimed) == step["jobs"], f"{len(claimed)} of {step['jobs']} jobs were claimed"
            else:
                await _admit(boss, step["jobs"])
    emit("done", trioboss=_PACKAGE, versions=_VERSIONS)


async def _admit(boss: trioboss.Boss, jobs: int) -> None:
    """Claim with a priority that no job has, until all jobs of keyed queues can have been admitted."""
    for _ in range(jobs // _ADMITTED_AT_ONCE + 2):
        found = await boss.fetch(QUEUE, batch_size=_ADMITTED_AT_ONCE, min_priority=_UNUSED_PRIORITY)
        assert found == [], "no job has that priority"


# -- draining


class _Drain:
    """Counts handler calls; `reached` waits for a number of them."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.count = 0
        self._goal = 0
        self._reached = trio.Event()

    async def handle(self, job: object) -> None:
        self.count += 1
        if self.count == self._goal:
            self._reached.set()

    async def reached(self, goal: int) -> None:
        self._goal = goal
        if self.count < goal:
            self._reached = trio.Event()
            await self._reached.wait()

    async def run(self, boss: trioboss.Boss, queue: str, jobs: int) -> None:
        """Handle so many jobs, and return when their completions are durable."""
        worker = await boss.work(queue, self.handle, **self.settings)
        await self.reached(jobs)
        await boss.off_work(worker)


async def _warm_up(boss: trioboss.Boss, settings: dict[str, Any]) -> None:
    """Prepare statements, fill caches and compile Python's code paths on another queue of the same kind."""
    jobs = await boss.insert(_WARM_UP, _rows(_WARM_UP_JOBS, _WARM_UP_JOBS))
    await _Drain(settings).run(boss, _WARM_UP, jobs)


async def drain(spec: Spec) -> None:
    """Handle all queued jobs."""
    jobs: int = spec["jobs"]
    async with trioboss.open_boss(spec["dsn"], migrate=False) as boss:
        await _warm_up(boss, spec["settings"])
        drained = _Drain(spec["settings"])

        async def body() -> dict[str, Any]:
            await drained.run(boss, QUEUE, jobs)
            return {"jobs": drained.count, "completed": drained.count + _WARM_UP_JOBS}

        await _measured(body)
        left = await boss.fetch(QUEUE)
        assert (drained.count, left) == (jobs, []), f"{drained.count} of {jobs} jobs, {len(left)} left"
    emit("checked")


async def refill(spec: Spec) -> None:
    """Insert one job for each key, wait for the handlers, and repeat that."""
    async with trioboss.open_boss(spec["dsn"], migrate=False) as boss:
        await _warm_up(boss, spec["settings"])
        drained = _Drain(spec["settings"])

        async def body() -> dict[str, Any]:
            sent = 0
            worker = await boss.work(QUEUE, drained.handle, **spec["settings"])
            while sent < spec["jobs"]:
                # Jobs whose completion is not durable yet still own their keys, so an insert may be refused.
                sent += await boss.insert(QUEUE, _rows(spec["keys"], spec["keys"]))
                await drained.reached(sent)
            await boss.off_work(worker)
            return {"jobs": drained.count}

        await _measured(body)
    emit("checked")


# -- sending


async def bulk(spec: Spec) -> None:
    """Insert many jobs by one call."""
    async with _open_client(spec) as boss:
        await boss.insert(_WARM_UP, _rows(_WARM_UP_JOBS, 0))

        async def body() -> dict[str, Any]:
            return {"jobs": await boss.insert(QUEUE, _rows(spec["jobs"], 0))}

        await _measured(body)
    emit("checked")


async def send(spec: Spec) -> None:
    """Send so many jobs from several tasks."""
    async with _open_client(spec, spec["senders"]) as boss:

        async def send_from(numbers: Iterator[int], queue: str) -> None:
            for i in numbers:
                await boss.send(queue, {"i": i, "t": 0})

        async def send_all(count: int, queue: str) -> None:
            numbers = iter(range(count))
            async with trio.open_nursery() as nursery:
                for _ in range(spec["senders"]):
                    nursery.start_soon(send_from, numbers, queue)

        async def body() -> dict[str, Any]:
            await send_all(spec["jobs"], QUEUE)
            return {"jobs": spec["jobs"]}

        await send_all(_WARM_UP_JOBS, _WARM_UP)
        await _measured(body)
    emit("checked")


# -- claiming


async def claim(spec: Spec) -> None:
    """Time each claim; with `refill`, the queue has no more than the jobs of one claim."""
    async with _open_client(spec) as boss:
        await boss.insert(_WARM_UP, _rows(20 * _BATCH, 20 * _BATCH))
        for _ in range(20):
            await boss.complete(_WARM_UP, await boss.fetch(_WARM_UP, batch_size=_BATCH))

        async def body() -> dict[str, Any]:
            times = []
            for number in range(spec["claims"]):
                if spec["refill"]:
                    await boss.insert(QUEUE, _rows(_BATCH, _BATCH, f"{number}/"))
                began = now()
                jobs = await boss.fetch(QUEUE, batch_size=_BATCH)
                times.append((now() - began) * 1000)
                assert len(jobs) == _BATCH, f"a claim of {_BATCH} jobs returned {len(jobs)}"
                if spec["refill"]:
                    await boss.complete(QUEUE, jobs)
            return {"ms": times, "jobs": spec["claims"] * _BATCH}

        await _measured(body)
    emit("checked")


# -- latency


async def produce(spec: Spec) -> None:
    """Send a job each 20 ms."""
    async with _open_client(spec) as boss:

        async def body() -> dict[str, Any]:
            began = trio.current_time()
            for i in range(spec["jobs"]):
                await trio.sleep_until(began + i * _INTERVAL)
                await boss.send(QUEUE, {"i": i, "t": now()})
            return {"jobs": spec["jobs"]}

        await _measured(body)
    emit("checked")


async def work(spec: Spec) -> None:
    """Handle jobs, and record the milliseconds from the call of send to the handler."""
    times: list[float] = []
    done = trio.Event()

    async def handle(job: Any) -> None:
        times.append((now() - job.data["t"]) * 1000)
        if len(times) == spec["jobs"]:
            done.set()

    async with trioboss.open_boss(spec["dsn"], migrate=False) as boss:
        await boss.work(QUEUE, handle, concurrency=10)

        async def body() -> dict[str, Any]:
            await done.wait()
            return {"ms": times, "jobs": len(times)}

        await _measured(body)
    emit("checked")


ROLES = {
    "fill": fill,
    "drain": drain,
    "refill": refill,
    "bulk": bulk,
    "send": send,
    "claim": claim,
    "produce": produce,
    "work": work,
}

if __name__ == "__main__":
    _spec = read_spec()
    trio.run(ROLES[_spec["role"]], _spec)
