"""Causes the faults of the plan, in the order of the seed, while the workers work.

The worker processes are its own children, so a signal can never reach an unrelated process that got the same pid.
"""

import contextlib
import itertools
import json
import os
import random
import signal
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path

import attrs
import trio
from psycopg.conninfo import make_conninfo

from benchmarks.harness.proxy import Proxy, open_proxy
from benchmarks.programs.protocol import Spec, emit, read_spec
from tests.chaos.harness.journal import Journal
from tests.chaos.harness.plan import Plan
from tests.chaos.harness.queues import LEASE
from tests.chaos.harness.server_faults import ServerFaults
from tests.chaos.harness.standby import with_standby
from tests.chaos.harness.worker_process import WorkerProcess, unpack_version

__all__ = ["Nemesis"]

_AFTER_RESUMING = (
    2.0  # seconds in which a resumed worker is not killed, so that it tries to settle its old jobs
)
_STOP_TIMEOUT = 60.0  # seconds after which a worker that does not react to SIGTERM is killed
_LOAD_INTERVAL = 0.25  # seconds
_LOAD_SAMPLES = 8  # of which the mean counts
_MOST_RUNNABLE = 3  # processes for each core
_MEMORY_INTERVAL = 5.0  # seconds
_CLOCK_ERRORS = (0.0, 0.0, 7200.0, -7200.0, 0.9)  # seconds


@attrs.define(eq=False)
class Nemesis(ServerFaults):
    """The faults: each kind of the plan is a method."""

    workers: list[WorkerProcess]
    producer_proxies: list[Proxy]
    """The proxies of the producers; each worker has its own."""

    async def cause(self, kinds: list[str], times: list[float]) -> None:
        """Cause all faults, each at its time. Most kinds last for a while, so faults overlap."""
        await self._pick_worker()
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for kind, due in zip(kinds, times, strict=True):
                await trio.sleep_until(began + due)
                fault: Callable[[], Awaitable[None]] = getattr(self, kind)
                if kind in ("kill", "restart", "failover"):
                    await fault()
                else:
                    nursery.start_soon(fault)
        emit("calm")

    async def cause_each(self, kinds: trio.MemoryReceiveChannel[str]) -> None:
        """Cause one fault after the other, each when the chaos run asks for it."""
        async for kind in kinds:
            await getattr(self, kind)()
            emit("caused")

    async def sample_load(self) -> None:
        """Record as a fault when the machine is overloaded: processes then wait for a core as if they were stopped."""
        samples = deque([0] * _LOAD_SAMPLES, _LOAD_SAMPLES)
        limit = _MOST_RUNNABLE * (os.cpu_count() or 1) * _LOAD_SAMPLES
        while True:
            samples.append(_count_runnable())
            if sum(samples) > limit:
                with self.fault("overload"):
                    while sum(samples) > limit:
                        await trio.sleep(_LOAD_INTERVAL)
                        samples.append(_count_runnable())
            await trio.sleep(_LOAD_INTERVAL)

    async def measure_memory(self) -> None:
        """Record the memory of the workers that are never killed, for as long as the run lasts."""
        while True:
            for worker in self.workers:
                if worker.is_steady and (size := worker.megabytes) is not None:
                    self.journal.write("memory", name=worker.name, megabytes=size)
            await trio.sleep(_MEMORY_INTERVAL)

    async def _pick_worker(self, *, manual: bool = True) -> WorkerProcess:
        """Wait for a running worker. A stopped one is left alone, because it is to be resumed."""
        while not (found := self._free_workers(manual=manual)):  # noqa: ASYNC110
            await trio.sleep(0.05)
        return self.rng.choice(found)

    def _free_workers(self, *, manual: bool) -> list[WorkerProcess]:
        return [each for each in self.workers if each.is_free and (manual or not each.is_blocking)]

    # -- processes

    async def kill(self) -> None:
        """Kill a worker with SIGKILL."""
        worker = await self._pick_worker()
        process = worker.process
        assert process is not None
        with self.fault("kill", worker.name):
            worker.ready = False
            process.kill()
            await process.wait()

    async def term(self) -> None:
        """Stop a worker with SIGTERM. A manual worker has no handler for it, so it is not chosen."""
        worker = await self._pick_worker(manual=False)
        process = worker.process
        assert process is not None
        worker.ready = False
        with self.fault("term", worker.name):
            process.send_signal(signal.SIGTERM)
            with trio.move_on_after(_STOP_TIMEOUT):
                await process.wait()
                return
        with self.fault("kill", worker.name):
            process.kill()
            await process.wait()

    async def stop(self) -> None:
        """Stop a worker with SIGSTOP for about one lease: mostly it resumes too late, sometimes in time."""
        worker = await self._pick_worker()
        process = worker.process
        assert process is not None
        with self.fault("stop", worker.name):
            worker.stopped = True
            process.send_signal(signal.SIGSTOP)
            await trio.sleep(LEASE * self.rng.uniform(0.8, 1.8))
            process.send_signal(signal.SIGCONT)
        await trio.sleep(_AFTER_RESUMING)
        worker.stopped = worker.stopped and worker.process is not process

    # -- the network

    async def _break_network(self, kind: str, change: Callable[[Proxy], Awaitable[None]]) -> None:
        """Break the network of a producer or a worker. Blocking clients need their silent connections closed."""
        if self.rng.random() < 0.3:
            with self.fault(kind, "producer"):
                proxy = self.rng.choice(self.producer_proxies)
                await change(proxy)
                proxy.close_silent()
            return
        worker = self.rng.choice(self.workers)
        with self.fault(kind, worker.name):
            await change(worker.proxy)
            if worker.is_blocking:
                worker.proxy.close_silent()

    async def delay(self) -> None:
        """Delay all data."""

        async def change(proxy: Proxy) -> None:
            proxy.delay = self.rng.uniform(0.02, 0.3)
            await trio.sleep(self.rng.uniform(1, 4))
            proxy.delay = 0.0

        await self._break_network("delay", change)

    async def silence(self) -> None:
        """Drop all data. The affected connections stay silent for ever."""

        async def change(proxy: Proxy) -> None:
            proxy.silent = True
            await trio.sleep(self.rng.uniform(0.5, 4))
            proxy.silent = False

        await self._break_network("silence", change)

    async def half_close(self) -> None:
        """Close one direction of the connections."""

        async def change(proxy: Proxy) -> None:
            proxy.half_close(towards_client=self.rng.random() < 0.5)

        await self._break_network("half_close", change)

    async def cut_reply(self) -> None:
        """Lose the replies to some commits, and their connections."""

        async def change(proxy: Proxy) -> None:
            proxy.lost_commits = self.rng.randint(1, 4)
            await trio.sleep(2)
            proxy.lost_commits = 0

        await self._break_network("cut_reply", change)


def _count_runnable() -> int:
    """Return how many processes of the machine run, or wait for a core."""
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])


_HASTY = {"user": "hasty", "password": "hasty"}  # a role whose sessions have time-outs


async def _run(
    spec: Spec, restarted: threading.Event, kinds: trio.MemoryReceiveChannel[str], stop: trio.Event
) -> None:
    plan, dsn, standby = Plan(**spec["plan"]), spec["dsn"], spec["standby"]
    clocks = itertools.cycle(_CLOCK_ERRORS)
    journal = Journal(spec["folder"], "nemesis")
    versions = itertools.cycle(unpack_version(plan.other, Path(spec["folder"])))
    async with contextlib.AsyncExitStack() as stack:

        async def open_way(number: int) -> tuple[Proxy, str]:
            """Open a way to the servers: every third one leads to a role with time-outs."""
            proxy = await stack.enter_async_context(open_proxy(dsn))
            way = make_conninfo(proxy.dsn, **_HASTY) if number % 3 == 1 else proxy.dsn
            return proxy, with_standby(way, standby)

        workers = []
        for number in range(plan.workers + plan.manual_workers):
            proxy, way = await open_way(number)
            is_manual = number >= plan.workers
            module = "tests.chaos.harness." + ("manual_worker" if is_manual else "worker")
            name = f"{'manual' if is_manual else 'worker'}-{number}"
            each = {"dsn": way, "folder": spec["folder"]}
            worker = WorkerProcess(name, module, each, proxy, is_manual, journal, clocks, versions)
            worker.is_steady = number < plan.steady
            workers.append(worker)
        ways = [await open_way(number) for number in range(plan.producers)]
        rng = random.Random(f"{plan.seed}/nemesis")
        nemesis = Nemesis(
            with_standby(dsn, standby),
            journal,
            rng,
            restarted,
            None if spec["disk"] is None else Path(spec["disk"]),
            workers,
            [proxy for proxy, _ in ways],
        )
        async with trio.open_nursery() as nursery:
            for worker in workers:
                nursery.start_soon(worker.run_forever)
            emit("ready", producers=[way for _, way in ways])
            nursery.start_soon(nemesis.cause, plan.faults(), plan.fault_times())
            nursery.start_soon(nemesis.cause_each, kinds)
            nursery.start_soon(nemesis.measure_memory)
            nursery.start_soon(nemesis.sample_load)
            await stop.wait()
            nursery.cancel_scope.cancel()


def main() -> None:
    """Cause the faults, then keep the workers running until the command `stop` or the end of standard input."""
    spec = read_spec()
    restarted = threading.Event()

    async def run() -> None:
        stop, token = trio.Event(), trio.lowlevel.current_trio_token()
        asked, kinds = trio.open_memory_channel[str](1000)

        def read_commands() -> None:
            for line in sys.stdin:
                command = json.loads(line)
                if command["do"] == "stop":
                    break
                if command["do"] == "fault":
                    token.run_sync_soon(asked.send_nowait, command["kind"])
                else:
                    restarted.set()
            restarted.set()
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(stop.set)

        threading.Thread(target=read_commands, daemon=True).start()
        await _run(spec, restarted, kinds, stop)

    trio.run(run)


if __name__ == "__main__":
    main()
