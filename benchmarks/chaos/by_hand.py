"""A worker that fetches and settles by hand. Nothing stops it when its lease is lost: a zombie as it is feared."""

import random
import time
from typing import Any
from uuid import uuid4

import attrs

import trioboss
from benchmarks.chaos.journal import Journal
from benchmarks.chaos.plan import QUEUES
from benchmarks.chaos.producer import open_boss
from benchmarks.chaos.worker import must_fail, shift_clock
from benchmarks.programs.link import emit, follow, read_spec

__all__ = ["Hand"]

_BEAT = 0.3  # seconds between two touches
_BREATH = 0.05  # seconds between two looks


@attrs.define(eq=False)
class Hand:
    """Takes one job after the other."""

    boss: trioboss.SyncBoss
    journal: Journal
    chance: random.Random

    def take_one(self) -> bool:
        """Fetch a job of any queue and bring it to its end; False if there was none."""
        for queue in self.chance.sample(tuple(QUEUES), len(QUEUES)):
            for job in self.boss.fetch(queue):
                self._run(job)
                return True
        return False

    def _run(self, job: Any) -> None:
        token = f"{self.journal.who}/{uuid4().hex[:12]}"
        lease = {"id": job.id, "attempt": job.attempt, "leased_on": job.started_on.timestamp()}
        self.journal.write("start", token=token, **lease)
        held = self._work(job)
        self.journal.write("end", token=token, how="returned")
        # Half of those that know better try nevertheless.
        if held or self.chance.random() < 0.5:
            self._settle(job, token)

    def _work(self, job: Any) -> bool:
        """Sleep, and keep the lease; return whether it was there to the end, as far as is known."""
        held, end = True, time.monotonic() + job.data["seconds"]
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _BEAT))
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
                self.boss.complete(job.queue, job, {"token": token})
                self.journal.write("settled", id=job.id, attempt=job.attempt, accepted=True)
        except trioboss.LeaseLost:
            self.journal.write("settled", id=job.id, attempt=job.attempt, accepted=False)


def main() -> None:
    """Work until killed."""
    spec = read_spec()
    follow(lambda command: None)
    shift_clock(spec["clock"])
    journal = Journal(spec["folder"], spec["name"])
    journal.write("born", clock=spec["clock"])
    with open_boss(spec["dsn"]) as boss:
        hand = Hand(boss, journal, random.Random())
        emit("ready")
        while True:
            try:
                worked = hand.take_one()
            except trioboss.DatabaseUnavailable:
                worked = False
            if not worked:
                time.sleep(_BREATH)


if __name__ == "__main__":
    main()
