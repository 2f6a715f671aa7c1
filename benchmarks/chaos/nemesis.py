"""Breaks everything that the plan names, in the order that the seed gives, while the workers work.

It keeps the workers itself: a process that it kills is its own child, so no other can have got its number.
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
from psycopg.conninfo import conninfo_to_dict

from benchmarks.chaos.journal import Journal
from benchmarks.chaos.keeper import Kept
from benchmarks.chaos.plan import LEASE, Plan
from benchmarks.chaos.proxy import Link, open_link
from benchmarks.programs.link import Spec, emit, read_spec

__all__ = ["Nemesis"]

# Whoever listens holds the presence of its boss, by a shared advisory lock.
_LISTENERS = """
    select pid from pg_locks where locktype = 'advisory' and mode = 'ShareLock'
      and database = (select oid from pg_database where datname = current_database())"""
_EVERYBODY = "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
_TERMINATE = "select pg_terminate_backend(%s)"
_LOCK = "lock table trioboss.job in access exclusive mode"
_SNAPSHOT = "set transaction isolation level repeatable read; select count(*) from trioboss.job"
_TIME_TO_WAKE = 2.0  # seconds in which a zombie is not killed
_CLOCKS = (0.0, 0.0, 7200.0, -7200.0, 0.9)  # seconds by which a worker's clock is wrong


@attrs.define(eq=False)
class Nemesis:
    """The faults."""

    dsn: str
    journal: Journal
    chance: random.Random
    workers: list[Kept]
    links: list[Link]
    """Of producers; those of workers are with them."""
    restarted: threading.Event

    async def strike(self, kinds: list[str], seconds: float) -> None:
        """All faults, spread over a time. Many of them last, so they meet."""
        await self._pick()
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
        """Written down before it happens and when it is over: whoever reads must not miss it."""
        number = self.chance.getrandbits(48)
        self.journal.write("fault", kind=kind, target=target, number=number)
        try:
            yield
        finally:
            self.journal.write("healed", number=number)

    async def _pick(self) -> Kept:
        """A worker that works. One that was stopped is left alone: it is to wake up."""
        while not (found := [each for each in self.workers if each.ready and not each.stopped]):  # noqa: ASYNC110
            await trio.sleep(0.05)
        return self.chance.choice(found)

    # -- processes

    async def kill(self) -> None:
        """SIGKILL."""
        worker = await self._pick()
        process = worker.process
        assert process is not None
        with self._fault("kill", worker.name):
            worker.ready = False
            process.kill()
            await process.wait()

    async def stop(self) -> None:
        """SIGSTOP around the end of a lease, then SIGCONT: mostly a zombie, sometimes just in time."""
        worker = await self._pick()
        process = worker.process
        assert process is not None
        with self._fault("stop", worker.name):
            worker.stopped = True
            process.send_signal(signal.SIGSTOP)
            await trio.sleep(LEASE * self.chance.uniform(0.8, 1.8))
            process.send_signal(signal.SIGCONT)
        await trio.sleep(_TIME_TO_WAKE)
        worker.stopped = worker.stopped and worker.process is not process

    # -- the server

    async def _say(self, *statements: str, hold: float = 0.0) -> list[Any]:
        """Run statements in one transaction, and keep it open for a while. A server that is down is no help."""

        def say() -> list[Any]:
            with contextlib.suppress(psycopg.Error), psycopg.connect(self.dsn) as connection:
                cursor = connection.cursor()
                for statement in statements:
                    cursor.execute(statement.encode())
                threading.Event().wait(hold)
                return cursor.fetchall() if cursor.description else []
            return []

        return await trio.to_thread.run_sync(say)

    async def _terminate(self, pids: list[Any]) -> None:
        for (pid,) in pids:
            await self._say(_TERMINATE.replace("%s", str(int(pid))))

    async def listener(self) -> None:
        """The backend of one listener is killed."""
        pids = await self._say(_LISTENERS)
        with self._fault("listener"):
            await self._terminate(self.chance.sample(pids, min(1, len(pids))))

    async def backends(self) -> None:
        """All backends are killed."""
        with self._fault("backends"):
            await self._terminate(await self._say(_EVERYBODY))

    async def restart(self) -> None:
        """The server is stopped at once, as by a crash, and started again."""
        with self._fault("restart"):
            self.restarted.clear()
            emit("restart")
            await trio.to_thread.run_sync(self.restarted.wait)

    async def lock(self) -> None:
        """Somebody locks the jobs for longer than a heartbeat lasts."""
        with self._fault("lock"):
            await self._say("set lock_timeout = '2s'", _LOCK, hold=self.chance.uniform(0.3, 2.5))

    async def snapshot(self) -> None:
        """Somebody looks at an old snapshot, which is nobody's excuse."""
        with self._fault("snapshot", "nobody"):
            await self._say(_SNAPSHOT, hold=self.chance.uniform(3, 10))

    # -- the network

    async def _on_link(self, kind: str, change: Callable[[Link], Awaitable[None]]) -> None:
        if self.chance.random() < 0.3:
            with self._fault(kind, "producer"):
                link = self.chance.choice(self.links)
                await change(link)
                link.cut_dead()
            return
        worker = self.chance.choice(self.workers)
        with self._fault(kind, worker.name):
            await change(worker.link)
            if worker.blocking:
                worker.link.cut_dead()

    async def delay(self) -> None:
        """Everything is late."""

        async def change(link: Link) -> None:
            link.delay = self.chance.uniform(0.02, 0.3)
            await trio.sleep(self.chance.uniform(1, 4))
            link.delay = 0.0

        await self._on_link("delay", change)

    async def hole(self) -> None:
        """Everything is swallowed, and the connections that this happened to stay silent for ever."""

        async def change(link: Link) -> None:
            link.silent = True
            await trio.sleep(self.chance.uniform(0.5, 4))
            link.silent = False

        await self._on_link("hole", change)

    async def half_close(self) -> None:
        """One side says that it will say nothing more."""
        await self._on_link("half_close", lambda link: link.half_close(self.chance.random() < 0.5))

    async def cut_reply(self) -> None:
        """The answers to some commits get lost, and their connections with them."""

        async def change(link: Link) -> None:
            link.replies_to_lose = self.chance.randint(1, 4)
            await trio.sleep(2)
            link.replies_to_lose = 0

        await self._on_link("cut_reply", change)


def _through(dsn: str, link: Link) -> str:
    return dsn.replace(f":{conninfo_to_dict(dsn)['port']}/", f":{link.port}/")


async def _run(spec: Spec, restarted: threading.Event, told: trio.Event) -> None:
    plan, dsn = Plan(**spec["plan"]), spec["dsn"]
    found = conninfo_to_dict(dsn)
    server = (str(found["host"]), int(str(found["port"])))
    clocks = itertools.cycle(_CLOCKS)
    async with trio.open_nursery() as nursery:
        workers = []
        for number in range(plan.workers + plan.by_hand):
            link = await open_link(nursery, server)
            blocking = number >= plan.workers
            module = "benchmarks.chaos.by_hand" if blocking else "benchmarks.chaos.worker"
            name = f"{'hand' if blocking else 'worker'}-{number}"
            each = {"dsn": _through(dsn, link), "folder": spec["folder"]}
            workers.append(Kept(name, module, each, link, blocking, clocks))
        links = [await open_link(nursery, server) for _ in range(plan.producers)]
        for worker in workers:
            nursery.start_soon(worker.keep)
        emit("ready", producers=[_through(dsn, link) for link in links])
        journal = Journal(spec["folder"], "nemesis")
        chance = random.Random(f"{plan.seed}/nemesis")
        nemesis = Nemesis(dsn, journal, chance, workers, links, restarted)
        nursery.start_soon(nemesis.strike, plan.faults(), plan.seconds)
        await told.wait()
        nursery.cancel_scope.cancel()


def main() -> None:
    """Strike, then keep the workers until told to stop, or until nobody is left who could tell."""
    spec = read_spec()
    restarted = threading.Event()

    async def run() -> None:
        told, token = trio.Event(), trio.lowlevel.current_trio_token()

        def obey() -> None:
            for line in sys.stdin:
                if json.loads(line)["do"] == "stop":
                    break
                restarted.set()
            restarted.set()
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(told.set)

        threading.Thread(target=obey, daemon=True).start()
        await _run(spec, restarted, told)

    trio.run(run)


if __name__ == "__main__":
    main()
