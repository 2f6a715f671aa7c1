"""Notifies the followers of a job when a worker of this boss claims it.

A claim notifies nobody: it is the most frequent statement, and nearly no job is followed. A follower sends the id of
its job to all bosses instead; each of them compares the jobs that it claims with a set that is nearly always empty.
"""

from collections.abc import Iterable
from typing import Protocol
from uuid import UUID

import attrs
import trio

from trioboss.actors.actor import Doorbell
from trioboss.actors.reporter import Reporter
from trioboss.errors import DatabaseUnavailable
from trioboss.events import ErrorEvent
from trioboss.model.job import Job

__all__ = ["Followers"]

_MOST = 10_000  # jobs to keep: every client of the database can send such a notification


class _NotifyPort(Protocol):
    async def notify(self, message: str) -> None:
        """Send a notification to all bosses."""


@attrs.define(eq=False)
class Followers:
    """The jobs that somebody follows, anywhere, and that this boss may claim."""

    _port: _NotifyPort
    _reporter: Reporter
    ids: dict[UUID, int] = attrs.field(factory=dict, init=False)
    """How many follow each job, in the order in which the first of them came."""
    _claimed: list[UUID] = attrs.field(factory=list, init=False)
    _bell: Doorbell = attrs.field(factory=Doorbell, init=False)

    def add(self, id: UUID) -> None:
        """A job is followed. Of too many the oldest are dropped: their followers read the job now and then."""
        self.ids[id] = self.ids.get(id, 0) + 1
        # The first in a dict is the oldest.
        if len(self.ids) > _MOST:
            del self.ids[next(iter(self.ids))]

    def remove(self, id: UUID) -> None:
        """A follower of the job has gone."""
        left = self.ids.pop(id, 0) - 1
        if left > 0:
            self.ids[id] = left

    def claimed(self, jobs: Iterable[Job]) -> None:
        """Jobs were claimed; called only if some job is followed."""
        if found := [job.id for job in jobs if job.id in self.ids]:
            self._claimed += found
            self._bell.ring()

    async def run(self) -> None:
        """Notify the followers of claimed jobs. Best effort: a follower also reads its job now and then."""
        while True:
            await self._bell.wait()
            claimed, self._claimed = self._claimed, []
            try:
                for id in claimed:
                    await self._port.notify(f"*changed {id}")  # the message that lets waiters read the job
            except (DatabaseUnavailable, trio.TooSlowError) as error:
                self._reporter.report(ErrorEvent("followers", str(error)))
