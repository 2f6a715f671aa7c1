"""`trioboss demo`: measures a worker and a producer on an embedded Postgres, on this machine."""

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import trio

from trioboss.api.boss import Boss, open_boss
from trioboss.cli.dashboard import open_dashboard
from trioboss.cli.signals import is_stopped_within, receive_stop_signals
from trioboss.model.check import check_duration
from trioboss.model.payload import Json
from trioboss.postgres.dsn import hide_password
from trioboss.postgres.embedded import find_dsn

__all__ = ["run_demo"]

_RATE = 100.0  # jobs a second, one after the other
_BULK = 20_000  # jobs at once
_REFRESH_INTERVAL = 0.25  # seconds


@attrs.define
class _Times:
    """Seconds from the call of `send` to the handler."""

    values: list[float] = attrs.field(factory=list)

    def percentile(self, share: float) -> float:
        ordered = sorted(self.values)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 if ordered else 0.0

    def __str__(self) -> str:
        return f"p50 {self.percentile(0.5):.1f} ms, p99 {self.percentile(0.99):.1f} ms, max {self.percentile(1):.1f} ms"


def run_demo(args: argparse.Namespace) -> int:
    """Run the demo."""
    return trio.run(_demo, args)


async def _demo(args: argparse.Namespace) -> int:
    """Show latency, then throughput, then what to try next."""
    seconds = check_duration("seconds", args.seconds, above=True)
    named = find_dsn(args.dsn)
    print(
        "Starting", "an embedded Postgres …" if named is None else f"on {hide_password(named)} …", flush=True
    )
    began = time.perf_counter()
    async with open_boss(args.dsn, schema="trioboss_demo", grace=2.0) as boss:
        print(f"Up after {time.perf_counter() - began:.1f} s: {boss!r}\n")
        await boss.clear_storage()
        await boss.create_queue("demo/greetings")
        await boss.create_queue("demo/bulk")
        if args.dashboard:
            await _show_dashboard(boss, args)
            return 0
        times = await _show_latency(boss, seconds)
        rate = await _show_throughput(boss)
        job = (await boss.find_jobs("demo/greetings", limit=1))[0]
    print(f"\nOne job at a time:    {times}, from send to handler, {len(times.values)} jobs")
    print(f"{_BULK} jobs at once:  {rate:.0f} jobs/s, each committed with its result")
    print(f"The result of the first job, from the archive: {job.state.value}, {job.output}")
    print("\nTry next:  trioboss doctor    ·    trioboss queues --schema trioboss_demo    ·    examples/")
    return 0


async def _show_dashboard(boss: Boss, args: argparse.Namespace) -> None:
    """Run jobs of several kinds until Ctrl-C, with the dashboard beside them."""
    await boss.create_queue("demo/orders", policy="key_strict_fifo", retry_limit=0)
    await boss.create_queue("demo/dead")
    await boss.create_queue(
        "demo/failing", retry_limit=3, retry_delay=5, retry_backoff=True, dead_letter="demo/dead"
    )
    # From the beginning a key that a failed job blocks, a dead letter, and a schedule.
    for number in range(3):
        order: Json = {"name": f"order {number}", "fails": number == 0}
        await boss.send("demo/orders", order, singleton_key="customer 7")
    await boss.send("demo/failing", {"name": "the first"}, retry_limit=0)
    await boss.schedule("demo/greetings", "* * * * *", {"name": "the clock"}, key="every-minute")

    async def run(job: Any) -> str:
        await trio.sleep(random.expovariate(20))
        if job.queue == "demo/failing" or job.data.get("fails"):
            raise ConnectionError("the server of the shop does not answer")
        return f"hello, {job.data['name']}"

    act_dsn = None if args.no_act else boss.dsn
    opening = open_dashboard(boss.dsn, boss.schema, args.dashboard, act_dsn=act_dsn, redact=args.redact)
    with receive_stop_signals() as signals:
        async with opening as address:
            print(f"The dashboard is at {address}  Ctrl-C ends it.", flush=True)
            for queue in ("demo/greetings", "demo/orders", "demo/failing"):
                await boss.work(queue, run, concurrency=5)
            number = 0
            while not await is_stopped_within(random.expovariate(10), signals):
                number += 1
                data: Json = {"name": f"job {number}"}
                await boss.send("demo/greetings", data)
                if number % 3 == 0:
                    await boss.send("demo/orders", data, singleton_key=f"customer {number % 7}")
                if number % 40 == 0:
                    await boss.send("demo/failing", data)


async def _show_latency(boss: Boss, seconds: float) -> _Times:
    times = _Times()
    sent = max(1, int(seconds * _RATE))
    finished = trio.Event()

    async def greet(job: Any) -> str:
        times.values.append(time.perf_counter() - job.data["sent"])
        if len(times.values) == sent:
            finished.set()
        return f"hello, {job.data['name']}"

    worker = await boss.work("demo/greetings", greet, concurrency=10)
    with _live_line() as show:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                _refresh, show, lambda: f"one job at a time: {len(times.values)}/{sent}  {times}"
            )
            begin = trio.current_time()
            for number in range(sent):
                await trio.sleep_until(begin + number / _RATE)
                await boss.send("demo/greetings", {"name": f"job {number}", "sent": time.perf_counter()})
            await finished.wait()
            nursery.cancel_scope.cancel()
    await boss.off_work(worker)
    return times


async def _show_throughput(boss: Boss) -> float:
    done = 0
    finished = trio.Event()

    async def count(job: object) -> None:
        nonlocal done
        done += 1
        if done == _BULK:
            finished.set()

    await boss.insert("demo/bulk", ({"data": {"number": number}} for number in range(_BULK)))
    began = time.perf_counter()
    with _live_line() as show:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_refresh, show, lambda: f"{_BULK} at once: {done} done")
            worker = await boss.work("demo/bulk", count, concurrency=10, prefetch=500)
            await finished.wait()
            await boss.off_work(worker)
            nursery.cancel_scope.cancel()
    return _BULK / (time.perf_counter() - began)


async def _refresh(show: Callable[[str], None], text: Callable[[], str]) -> None:
    while True:
        show(text())
        await trio.sleep(_REFRESH_INTERVAL)


@contextmanager
def _live_line() -> Iterator[Callable[[str], None]]:
    """A line that is rewritten on a terminal, and printed once a second elsewhere."""
    printed = -1.0

    def show(text: str) -> None:
        nonlocal printed
        if sys.stdout.isatty():
            print(f"\r\x1b[2K  {text}", end="", flush=True)
        elif time.monotonic() - printed >= 1:
            printed = time.monotonic()
            print(f"  {text}", flush=True)

    try:
        yield show
    finally:
        if sys.stdout.isatty():
            print("\r\x1b[2K", end="", flush=True)
