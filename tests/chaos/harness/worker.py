"""A worker as users run it: handlers under `boss.work`, here for all queues of the plan."""

import os
import signal
import sys
import time
import traceback
from typing import Any
from uuid import uuid4

import attrs
import trio

import trioboss
from benchmarks.programs.protocol import Spec, emit, handle_commands, read_spec
from tests.chaos.harness.explaining import UNAVAILABLE
from tests.chaos.harness.journal import Journal
from tests.chaos.harness.plan import GRACE, PRESENCE_GRACE, checksum, must_fail
from tests.chaos.harness.queues import BATCHES

__all__ = ["ChaosError", "handle_strange", "make_output", "note_start", "shift_clock"]

_CONCURRENCY = 12
_BATCH_SIZE = 6
_PREFETCH = 8  # of every other worker, so that kills also hit jobs that were claimed but not started


class ChaosError(Exception):
    """A handler's failure; its text is the token of the handler call."""


def shift_clock(seconds: float) -> None:
    """Give this process a wrong wall clock. The monotonic clock is not changed."""
    time_ns = time.time_ns
    time.time_ns = lambda: time_ns() + int(seconds * 1e9)
    time.time = lambda: time_ns() / 1e9 + seconds


def note_start(journal: Journal, job: Any) -> str:
    """Record that a handler was entered, and return the token that names this call."""
    token = f"{journal.process}/{uuid4().hex[:12]}"
    lease = {"id": job.id, "attempt": job.attempt, "leased_on": job.started_on.timestamp()}
    journal.write("start", token=token, checksum=checksum(job.data), **lease)
    return token


def handle_strange(job: Any) -> None:
    """Complete or fail a job that the nemesis inserted. No journal has it: only the other jobs are judged."""
    if job.data["strange"] == "fail":
        raise ChaosError("strange")


def make_output(job: Any, token: str) -> dict[str, str]:
    """Return the output of a job, of the size that its data names."""
    return {"token": token, "fill": "x" * job.data.get("output", 0)}


@attrs.define(eq=False)
class Handler:
    """Sleeps, and completes, fails or exits according to the data of the job."""

    journal: Journal

    async def __call__(self, job: Any) -> dict[str, str] | None:
        if "strange" in job.data:
            handle_strange(job)
            return None
        token = note_start(self.journal, job)
        try:
            await self._work(job.data)
        except trio.Cancelled:
            self.journal.write("end", token=token, how="cancelled")
            raise
        if job.data["then"] == "die" and job.source_id is None:
            self.journal.write("fault", kind="poison", target=self.journal.process, number=token)
            os._exit(137)
        self.journal.write("end", token=token, how="returned")
        if must_fail(job):
            raise ChaosError(token)
        return make_output(job, token)

    async def handle_batch(self, jobs: list[Any]) -> list[trioboss.BatchResult]:
        """Work for as long as the longest job of the batch, and return the result of each."""
        strange = [trioboss.BatchResult(job.id) for job in jobs if "strange" in job.data]
        jobs = [job for job in jobs if "strange" not in job.data]
        return strange + await self._handle_batch(jobs) if jobs else strange

    async def _handle_batch(self, jobs: list[Any]) -> list[trioboss.BatchResult]:
        tokens = {job.id: note_start(self.journal, job) for job in jobs}
        how = "returned"
        try:
            await self._work(max((job.data for job in jobs), key=lambda data: float(data["seconds"])))
        except trio.Cancelled:
            how = "cancelled"
            raise
        finally:
            for token in tokens.values():
                self.journal.write("end", token=token, how=how)
        return [
            trioboss.BatchResult(job.id, error=ChaosError(tokens[job.id]))
            if must_fail(job)
            else trioboss.BatchResult(job.id, make_output(job, tokens[job.id]))
            for job in jobs
        ]

    @staticmethod
    async def _work(data: dict[str, Any]) -> None:
        with trio.CancelScope(shield=data.get("how") == "shielded"):
            await trio.sleep(data["seconds"])


async def _record_outcomes(boss: trioboss.Boss, journal: Journal, *, task_status: Any) -> None:
    """Record whether results were accepted."""
    async with boss.events() as events:
        task_status.started()
        async for event in events:
            if isinstance(event, trioboss.events.JobCompleted):
                journal.write("settled", id=event.id, attempt=event.attempt, accepted=True)
            elif isinstance(event, trioboss.events.LeaseLostEvent):
                journal.write("settled", id=event.id, attempt=event.attempt, accepted=False)


async def work(spec: Spec) -> None:
    """Work until killed, or until SIGTERM: then the boss stops gracefully."""
    journal = Journal(spec["folder"], spec["name"])
    journal.write("started", clock=spec["clock"], package=trioboss.__file__)
    options = {
        "migrate": False,
        "grace": GRACE,
        "presence_grace": PRESENCE_GRACE,
        "connect_wait": 120.0,
        "worker_name": spec["name"],
    }
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async with trioboss.open_boss(spec["dsn"], **options) as boss, trio.open_nursery() as nursery:
            await nursery.start(_record_outcomes, boss, journal)
            prefetch = sum(spec["name"].encode()) % 2 * _PREFETCH
            handler = Handler(journal)
            worker = await boss.work("chaos.*", handler, concurrency=_CONCURRENCY, prefetch=prefetch)
            journal.write("registered", worker=worker.id)
            worker = await boss.work(BATCHES, handler.handle_batch, batch_size=_BATCH_SIZE, concurrency=2)
            journal.write("registered", worker=worker.id)
            emit("ready")
            async for _ in signals:
                nursery.cancel_scope.cancel()
                break


def main() -> None:
    """Run the worker of the specification."""
    spec = read_spec()
    handle_commands(lambda command: None)
    shift_clock(spec["clock"])
    try:
        trio.run(work, spec)
    except* trioboss.DatabaseUnavailable:
        # The server went away while the worker started. A service manager would start it again.
        traceback.print_exc()
        sys.exit(UNAVAILABLE)


if __name__ == "__main__":
    main()
