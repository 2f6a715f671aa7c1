"""A worker as users run it: handlers under `boss.work`, here for all queues of the plan."""

import os
import time
from typing import Any
from uuid import uuid4

import attrs
import trio

import trioboss
from benchmarks.programs.protocol import Spec, emit, handle_commands, read_spec
from tests.chaos.harness.journal import Journal
from tests.chaos.harness.plan import PRESENCE_GRACE, RETRY_LIMIT

__all__ = ["ChaosError", "must_fail", "shift_clock"]

_CONCURRENCY = 12
_PREFETCH = 8  # of every other worker, so that kills also hit jobs that were claimed but not started


class ChaosError(Exception):
    """A handler's failure; its text is the token of the handler call."""


def must_fail(job: Any) -> bool:
    """Whether this attempt fails. A job that was retried by an operator succeeds, and so does a dead letter job."""
    fails = {"fail": RETRY_LIMIT, "fail_once": 0}.get(job.data["then"], -1)
    return job.source_id is None and job.retry_count <= fails


def shift_clock(seconds: float) -> None:
    """Give this process a wrong wall clock. The monotonic clock is not changed."""
    time_ns = time.time_ns
    time.time_ns = lambda: time_ns() + int(seconds * 1e9)
    time.time = lambda: time_ns() / 1e9 + seconds


@attrs.define(eq=False)
class Handler:
    """Sleeps, and completes, fails or exits according to the data of the job."""

    journal: Journal

    async def __call__(self, job: Any) -> dict[str, str]:
        token = f"{self.journal.process}/{uuid4().hex[:12]}"
        lease = {"id": job.id, "attempt": job.attempt, "leased_on": job.started_on.timestamp()}
        self.journal.write("start", token=token, **lease)
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
        return {"token": token}

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
    """Work until killed."""
    journal = Journal(spec["folder"], spec["name"])
    journal.write("started", clock=spec["clock"])
    options = {
        "migrate": False,
        "presence_grace": PRESENCE_GRACE,
        "connect_wait": 120.0,
        "worker_name": spec["name"],
    }
    async with trioboss.open_boss(spec["dsn"], **options) as boss, trio.open_nursery() as nursery:
        await nursery.start(_record_outcomes, boss, journal)
        prefetch = sum(spec["name"].encode()) % 2 * _PREFETCH
        worker = await boss.work("chaos.*", Handler(journal), concurrency=_CONCURRENCY, prefetch=prefetch)
        journal.write("registered", worker=worker.id)
        emit("ready")
        await trio.sleep_forever()


def main() -> None:
    """Run the worker of the specification."""
    spec = read_spec()
    handle_commands(lambda command: None)
    shift_clock(spec["clock"])
    trio.run(work, spec)


if __name__ == "__main__":
    main()
