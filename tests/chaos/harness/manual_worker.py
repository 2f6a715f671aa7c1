"""A worker that fetches and settles jobs itself. It goes on when its lease is lost, and then settles too late."""

import contextlib
import random
import time
from typing import Any

import attrs

import trioboss
from benchmarks.programs.protocol import emit, handle_commands, read_spec
from tests.chaos.harness.journal import Journal
from tests.chaos.harness.plan import must_fail
from tests.chaos.harness.producer import open_boss
from tests.chaos.harness.queues import QUEUES
from tests.chaos.harness.worker import make_output, note_start, shift_clock

__all__ = ["ManualWorker"]

_HEARTBEAT = 0.3  # seconds between two calls of touch
_IDLE_DELAY = 0.05  # seconds until the next fetch after one that returned nothing


@attrs.define(eq=False)
class ManualWorker:
    """Runs one job after the other."""

    boss: trioboss.SyncBoss
    journal: Journal
    rng: random.Random

    def run_one(self) -> bool:
        """Fetch and run one job of any queue; return whether there was one."""
        for queue in self.rng.sample(tuple(QUEUES), len(QUEUES)):
            for job in self.boss.fetch(queue):
                with contextlib.suppress(trioboss.LeaseLost):
                    self._run(job)
                return True
        return False

    def _run(self, job: Any) -> None:
        if "strange" in job.data:
            self.boss.complete(job.queue, job)
            return
        token = note_start(self.journal, job)
        held = self._work(job)
        self.journal.write("end", token=token, how="returned")
        # Half of the results without a lease are sent nevertheless: the database has to refuse them.
        if held or self.rng.random() < 0.5:
            self._settle(job, token)

    def _work(self, job: Any) -> bool:
        """Sleep and renew the lease; return whether no renewal was refused."""
        held, end = True, time.monotonic() + job.data["seconds"]
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _HEARTBEAT))
            try:
                self.boss.touch(job.queue, job)
            except trioboss.LeaseLost:
                held = False
                self.journal.write("settled", id=job.id, attempt=job.attempt, accepted=False)
            except trioboss.DatabaseUnavailable:
                continue
        return held

    def _settle(self, job: Any, token: str) -> None:
        try:
            if must_fail(job):
                self.boss.fail(job.queue, job, token)
            else:
                self.boss.complete(job.queue, job, make_output(job, token))
                self.journal.write("settled", id=job.id, attempt=job.attempt, accepted=True)
        except trioboss.LeaseLost:
            self.journal.write("settled", id=job.id, attempt=job.attempt, accepted=False)


def main() -> None:
    """Work until killed."""
    spec = read_spec()
    handle_commands(lambda command: None)
    shift_clock(spec["clock"])
    journal = Journal(spec["folder"], spec["name"])
    journal.write("started", clock=spec["clock"])
    with open_boss(spec["dsn"]) as boss:
        worker = ManualWorker(boss, journal, random.Random())
        emit("ready")
        while True:
            try:
                worked = worker.run_one()
            except trioboss.DatabaseUnavailable:
                worked = False
            if not worked:
                time.sleep(_IDLE_DELAY)


if __name__ == "__main__":
    main()
