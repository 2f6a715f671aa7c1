"""Causes the faults of the plan, in the order of the seed, while the workers work.

The worker processes are its own children, so a signal can never reach an unrelated process that got the same pid.
"""

import contextlib
import itertools
import json
import random
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import attrs
import psycopg
import trio

from benchmarks.harness.proxy import Proxy, open_proxy
from benchmarks.programs.protocol import Spec, emit, read_spec
from tests.chaos.harness.journal import Journal
from tests.chaos.harness.plan import LEASE, Plan
from tests.chaos.harness.worker_process import WorkerProcess

__all__ = ["Nemesis"]

# The listening connection of a boss holds a shared advisory lock, which proves the presence of the boss.
_LISTENERS = """
    select pid from pg_locks where locktype = 'advisory' and mode = 'ShareLock'
      and database = (select oid from pg_database where datname = current_database())"""
_BACKENDS = "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
_TERMINATE = "select pg_terminate_backend(%s)"
_LOCK = "lock table trioboss.live_job in access exclusive mode"
_SNAPSHOT = "set transaction isolation level repeatable read; select count(*) from trioboss.live_job"
_AFTER_RESUMING = (
    2.0  # seconds in which a resumed worker is not killed, so that it tries to settle its old jobs
)
_CLOCK_ERRORS = (0.0, 0.0, 7200.0, -7200.0, 0.9)  # seconds


@attrs.define(eq=False)
class Nemesis:
    """The faults: each kind of the plan is a method."""

    dsn: str
    journal: Journal
    rng: random.Random
    workers: list[WorkerProcess]
    producer_proxies: list[Proxy]
    """The proxies of the producers; each worker has its own."""
    restarted: threading.Event

    async def cause(self, kinds: list[str], seconds: float) -> None:
        """Cause all faults, spread over a time. Most kinds last for a while, so faults overlap."""
        await self._pick_worker()
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for place, kind in enumerate(kinds):
                await trio.sleep_until(began + seconds * place / len(kinds))
                fault: Callable[[], Awaitable[None]] = getattr(self, kind)
                if kind in ("kill", "restart"):
                    await fault()
                else:
                    nursery.start_soon(fault)
        emit("calm")

    @contextlib.contextmanager
    def _fault(self, kind: str, target: str | None = None) -> Iterator[None]:
        """Record a fault before it begins and after it is over, so that the checker never misses one."""
        number = self.rng.getrandbits(48)
        self.journal.write("fault", kind=kind, target=target, number=number)
        try:
            yield
        finally:
            self.journal.write("healed", number=number)

    async def _pick_worker(self) -> WorkerProcess:
        """Wait for a running worker. A stopped one is left alone, because it is to be resumed."""
        while not (found := [each for each in self.workers if each.ready and not each.stopped]):  # noqa: ASYNC110
            await trio.sleep(0.05)
        return self.rng.choice(found)

    # -- processes

    async def kill(self) -> None:
        """Kill a worker with SIGKILL."""
        worker = await self._pick_worker()
        process = worker.process
        assert process is not None
        with self._fault("kill", worker.name):
            worker.ready = False
            process.kill()
            await process.wait()

    async def stop(self) -> None:
        """Stop a worker with SIGSTOP for about one lease: mostly it resumes too late, sometimes in time."""
        worker = await self._pick_worker()
        process = worker.process
        assert process is not None
        with self._fault("stop", worker.name):
            worker.stopped = True
            process.send_signal(signal.SIGSTOP)
            await trio.sleep(LEASE * self.rng.uniform(0.8, 1.8))
            process.send_signal(signal.SIGCONT)
        await trio.sleep(_AFTER_RESUMING)
        worker.stopped = worker.stopped and worker.process is not process

    # -- the server

    async def _execute(self, *statements: str, hold: float = 0.0) -> list[Any]:
        """Execute statements in one transaction and keep it open for a while. Errors are ignored: faults overlap."""

        def execute() -> list[Any]:
            with contextlib.suppress(psycopg.Error), psycopg.connect(self.dsn) as connection:
                cursor = connection.cursor()
                for statement in statements:
                    cursor.execute(statement.encode())
                threading.Event().wait(hold)
                return cursor.fetchall() if cursor.description else []
            return []

        return await trio.to_thread.run_sync(execute)

    async def _terminate(self, pids: list[Any]) -> None:
        for (pid,) in pids:
            await self._execute(_TERMINATE.replace("%s", str(int(pid))))

    async def listener(self) -> None:
        """Terminate the backend of one listener."""
        pids = await self._execute(_LISTENERS)
        with self._fault("listener"):
            await self._terminate(self.rng.sample(pids, min(1, len(pids))))

    async def backends(self) -> None:
        """Terminate all backends."""
        with self._fault("backends"):
            await self._terminate(await self._execute(_BACKENDS))

    async def restart(self) -> None:
        """Crash the server and start it again. The chaos run does it, because it owns the server."""
        with self._fault("restart"):
            self.restarted.clear()
            emit("restart")
            await trio.to_thread.run_sync(self.restarted.wait)

    async def lock(self) -> None:
        """Lock the jobs, up to longer than a heartbeat lasts."""
        with self._fault("lock"):
            await self._execute("set lock_timeout = '2s'", _LOCK, hold=self.rng.uniform(0.3, 2.5))

    async def snapshot(self) -> None:
        """Hold an old snapshot. It has no target, so that it does not count as the reason of a lost lease."""
        with self._fault("snapshot", "none"):
            await self._execute(_SNAPSHOT, hold=self.rng.uniform(3, 10))

    # -- the network

    async def _break_network(self, kind: str, change: Callable[[Proxy], Awaitable[None]]) -> None:
        """Break the network of a producer or a worker. Blocking clients need their silent connections closed."""
        if self.rng.random() < 0.3:
            with self._fault(kind, "producer"):
                proxy = self.rng.choice(self.producer_proxies)
                await change(proxy)
                proxy.close_silent()
            return
        worker = self.rng.choice(self.workers)
        with self._fault(kind, worker.name):
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


async def _run(spec: Spec, restarted: threading.Event, stop: trio.Event) -> None:
    plan, dsn = Plan(**spec["plan"]), spec["dsn"]
    clocks = itertools.cycle(_CLOCK_ERRORS)
    async with contextlib.AsyncExitStack() as stack:
        workers = []
        for number in range(plan.workers + plan.manual_workers):
            proxy = await stack.enter_async_context(open_proxy(dsn))
            is_manual = number >= plan.workers
            module = "tests.chaos.harness." + ("manual_worker" if is_manual else "worker")
            name = f"{'manual' if is_manual else 'worker'}-{number}"
            each = {"dsn": proxy.dsn, "folder": spec["folder"]}
            workers.append(WorkerProcess(name, module, each, proxy, is_manual, clocks))
        proxies = [await stack.enter_async_context(open_proxy(dsn)) for _ in range(plan.producers)]
        journal = Journal(spec["folder"], "nemesis")
        rng = random.Random(f"{plan.seed}/nemesis")
        nemesis = Nemesis(dsn, journal, rng, workers, proxies, restarted)
        async with trio.open_nursery() as nursery:
            for worker in workers:
                nursery.start_soon(worker.run_forever)
            emit("ready", producers=[proxy.dsn for proxy in proxies])
            nursery.start_soon(nemesis.cause, plan.faults(), plan.seconds)
            await stop.wait()
            nursery.cancel_scope.cancel()


def main() -> None:
    """Cause the faults, then keep the workers running until the command `stop` or the end of standard input."""
    spec = read_spec()
    restarted = threading.Event()

    async def run() -> None:
        stop, token = trio.Event(), trio.lowlevel.current_trio_token()

        def read_commands() -> None:
            for line in sys.stdin:
                if json.loads(line)["do"] == "stop":
                    break
                restarted.set()
            restarted.set()
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(stop.set)

        threading.Thread(target=read_commands, daemon=True).start()
        await _run(spec, restarted, stop)

    trio.run(run)


if __name__ == "__main__":
    main()
