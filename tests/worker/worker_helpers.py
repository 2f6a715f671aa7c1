"""Worker processes, and the lines that they print."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import attrs
import psycopg
import trio
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier

TIMEOUT = 60  # seconds after which a test has failed
HERE = Path(__file__).parent


@attrs.define(eq=False)
class WorkerProcess:
    """A process, and its lines in order."""

    process: trio.Process
    lines: list[str] = attrs.field(factory=list)
    _news: trio.Event = attrs.field(factory=trio.Event)
    _open_streams: int = 2

    @property
    def pid(self):
        return self.process.pid

    async def read(self, stream):
        rest = b""
        async for chunk in stream:
            *lines, rest = (rest + chunk).split(b"\n")
            self.lines += [line.decode() for line in lines]
            self._tell()
        self._open_streams -= 1
        self._tell()

    def _tell(self):
        self._news.set()
        self._news = trio.Event()

    def matching(self, *words):
        return [line for line in self.lines if all(str(word) in line for word in words)]

    async def prints(self, *words, times=1):
        """Wait for so many lines that contain all of these texts; return the last of them."""
        with trio.move_on_after(TIMEOUT):
            while len(found := self.matching(*words)) < times:
                await self._news.wait()
            return found[times - 1]
        raise AssertionError(f"it did not say {words}, but {self.lines[-20:]}")

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    async def ends(self):
        """Wait until it has ended and all its lines are read; return its exit code."""
        with trio.fail_after(TIMEOUT):
            while self._open_streams:
                await self._news.wait()
            return await self.process.wait()


@attrs.define(eq=False)
class Workers:
    """Starts processes, and ends them all."""

    nursery: trio.Nursery
    dsn: str
    started: list[WorkerProcess] = attrs.field(factory=list)

    async def start(self, *arguments, app="worker_apps:app", **environment):
        """Run `trioboss worker` with these arguments."""
        process = await trio.lowlevel.open_process(
            [sys.executable, "-m", "trioboss", "worker", app, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=HERE,
            env=os.environ | {"TRIOBOSS_DSN": self.dsn} | environment,
        )
        worker = WorkerProcess(process)
        self.started.append(worker)
        self.nursery.start_soon(worker.read, process.stdout)
        self.nursery.start_soon(worker.read, process.stderr)
        return worker

    async def start_two(self, *arguments):
        """Start two at the same time."""
        return await self.start(*arguments), await self.start(*arguments)

    async def kill(self):
        for worker in self.started:
            if worker.process.returncode is None:
                worker.signal(signal.SIGKILL)
            await worker.process.wait()


async def first_to_print(workers, *words):
    """The process that first prints this text."""
    found = []

    async def wait(worker):
        await worker.prints(*words)
        found.append(worker)
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for worker in workers:
            nursery.start_soon(wait, worker)
    return found[0]


async def next_of(kind, events):
    """The next event of a kind."""
    with trio.fail_after(TIMEOUT):
        async for event in events:
            if isinstance(event, kind):
                return event
    raise AssertionError(f"there was no {kind}")


async def eventually(boss, queue, id, state):
    """Wait until a job is in a state for which there is no event; return the job."""
    with trio.fail_after(TIMEOUT):
        while True:
            job = await boss.get_job_by_id(queue, id)
            if job is not None and job.state == state:
                return job
            await trio.sleep(0.05)


@contextmanager
def closed(server_dsn, dsn):
    """Let the database refuse connections, after it has ended the existing ones."""
    name = conninfo_to_dict(dsn)["dbname"]
    with psycopg.connect(server_dsn, autocommit=True) as owner:
        allow = SQL("alter database {} allow_connections {}")
        owner.execute(allow.format(Identifier(name), SQL("false")))
        try:
            owner.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name])
            yield
        finally:
            owner.execute(allow.format(Identifier(name), SQL("true")))


def fail_all(boss, queue, times=1):
    """Fail all jobs of a queue that can be fetched, so many times."""
    for _ in range(times):
        for job in boss.fetch(queue, batch_size=1000):
            boss.fail(queue, job, ValueError("it went\nwrong"))
