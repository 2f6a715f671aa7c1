"""An open loop keeps its rate whatever the queue does, so a delay shows in all jobs that were due during it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from benchmarks.adapters.pacing import at_full_speed, at_rate, in_bulk
from benchmarks.adapters.trioboss import TrioRuntime
from benchmarks.harness.percentiles import latencies, summarize

RATE = 100.0
COUNT = 300
STALL = 1.0


class VirtualRuntime(TrioRuntime):
    """trio with its virtual clock; at one sleep the whole sender oversleeps."""

    def __init__(self, oversleep_at: int = -1) -> None:
        self._sleeps = 0
        self._oversleep_at = oversleep_at

    def now(self) -> float:  # type: ignore[override]
        return trio.current_time() + 1.0  # a due time of 0 means that none was planned

    async def sleep(self, seconds: float) -> None:
        self._sleeps += 1
        await trio.sleep(seconds + (STALL if self._sleeps == self._oversleep_at else 0.0))

    @asynccontextmanager
    async def tasks(self) -> AsyncIterator[Callable[..., object]]:
        async with trio.open_nursery() as nursery:
            yield nursery.start_soon


class Consumer:
    """Handles one job after the other in no time, and stalls once."""

    def __init__(self, runtime: VirtualRuntime, stalls_at: int = -1) -> None:
        self._runtime = runtime
        self._stalls_at = stalls_at
        self._lock = trio.StrictFIFOLock()
        self.rows: list[tuple[float, float, float]] = []

    async def send(self, data: dict[str, Any]) -> None:
        async with self._lock:
            if len(self.rows) == self._stalls_at:
                await trio.sleep(STALL)
            self.rows.append((self._runtime.now(), data["t"], data["due"]))

    def latencies(self) -> list[float]:
        entered, called, due = zip(*self.rows, strict=True)
        return latencies(entered, called, due)


async def test_without_a_delay_no_job_waits(autojump_clock: MockClock):
    runtime = VirtualRuntime()
    consumer = Consumer(runtime)
    sent = await at_rate(runtime, consumer.send, COUNT, RATE)
    assert sent.count == COUNT
    assert sent.end - sent.begin == pytest.approx((COUNT - 1) / RATE)
    assert max(consumer.latencies()) == pytest.approx(0.0, abs=1e-9)


async def test_a_stall_of_the_consumer_shows_in_every_job_due_during_it(
    autojump_clock: trio.testing.MockClock,
):
    runtime = VirtualRuntime()
    consumer = Consumer(runtime, stalls_at=100)
    await at_rate(runtime, consumer.send, COUNT, RATE)
    waits = consumer.latencies()
    assert sum(wait > 0 for wait in waits) == pytest.approx(STALL * RATE, abs=1)
    assert summarize(waits).p95 == pytest.approx(0.85, abs=0.02)


async def test_a_delay_of_the_sender_shows_in_the_latencies(autojump_clock: MockClock):
    runtime = VirtualRuntime(oversleep_at=100)
    consumer = Consumer(runtime)
    sent = await at_rate(runtime, consumer.send, COUNT, RATE)
    assert sent.late == pytest.approx(STALL)
    assert sum(wait > 0 for wait in consumer.latencies()) == pytest.approx(STALL * RATE, abs=1)


async def test_a_slow_send_does_not_delay_the_next_one(autojump_clock: MockClock):
    async def send(data: dict[str, Any]) -> None:
        await trio.sleep(STALL)

    sent = await at_rate(VirtualRuntime(), send, COUNT, RATE)
    assert sent.late == pytest.approx(0.0, abs=1e-9)


async def test_a_closed_loop_would_hide_the_delay(autojump_clock: MockClock):
    runtime = VirtualRuntime()
    consumer = Consumer(runtime, stalls_at=100)

    async def send(data: dict[str, Any]) -> None:
        await consumer.send(data)
        await trio.sleep(1 / RATE)

    await at_full_speed(runtime, send, senders=1, seconds=COUNT / RATE)
    assert sum(wait > 0 for wait in consumer.latencies()) == 1


async def test_senders_at_full_speed_do_not_wait_for_each_other(autojump_clock: MockClock):
    runtime = VirtualRuntime()

    async def send(data: dict[str, Any]) -> None:
        await trio.sleep(0.1)

    assert (await at_full_speed(runtime, send, senders=10, seconds=1.0)).count == 100


async def test_bulk_sends_all_jobs_in_chunks_after_a_warm_up(autojump_clock: MockClock):
    sizes: list[int] = []

    async def send_many(rows: Any) -> None:
        sizes.append(len(rows))

    sent = await in_bulk(VirtualRuntime(), send_many, 2500, 1000)
    assert sent.count == 2500
    assert sizes == [1000, 1000, 1000, 500]
