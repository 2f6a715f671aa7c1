"""Keeps the leases of running jobs: renews them, and stops a job before its lease ends.

Every job that lasts has a heartbeat actor of its own. Jobs that are over before it would have anything to do
never get one: starting a task costs more than they do.
"""

from collections import deque
from collections.abc import Sequence

import attrs
import trio

from trioboss.actors.doorbell import Doorbell
from trioboss.actors.ports import WorkPort
from trioboss.actors.reporter import Reporter
from trioboss.actors.runner import judge_cancelled
from trioboss.actors.running import CancelReason, Running
from trioboss.errors import DatabaseUnavailable
from trioboss.events import JobStuck, LoopBlocked
from trioboss.machines.lease import Due
from trioboss.model.job import Lease

__all__ = ["Renewer", "Wards", "keep_lease"]

_YOUTH = 0.1  # seconds a job runs before it gets its heartbeat; shorter than any lease or interval can be
_LAG = 1.0  # seconds by which a timer may be late before the event loop counts as blocked


@attrs.define(eq=False)
class Wards:
    """Jobs as they start, in order; those that outlive their youth get a heartbeat each."""

    _young: deque[Running] = attrs.field(factory=deque, init=False)
    _bell: Doorbell = attrs.field(factory=Doorbell, init=False)

    def add(self, running: Running) -> None:
        """A job starts."""
        if not self._young:
            self._bell.ring()
        self._young.append(running)

    async def run(self, nursery: trio.Nursery, renewer: "Renewer", reporter: Reporter) -> None:
        """Start heartbeats for the jobs that last."""
        while True:
            if not self._young:
                await self._bell.wait()
                continue
            due = self._young[0].started + _YOUTH
            await trio.sleep_until(due)
            if (lag := trio.current_time() - due) > _LAG:
                reporter.report(LoopBlocked(lag))
            while self._young and self._young[0].started + _YOUTH <= trio.current_time():
                running = self._young.popleft()
                if not running.ended:
                    running.done = trio.Event()
                    nursery.start_soon(keep_lease, running, renewer, reporter)


async def keep_lease(running: Running, renewer: "Renewer", reporter: Reporter) -> None:
    """The heartbeat of one job, until its handler has ended."""
    assert running.done is not None
    while not running.ended:
        at, due = running.machine.next()
        with trio.move_on_at(at):
            await running.done.wait()
            return
        if due is Due.BEAT:
            await _beat(running, renewer)
        elif due is Due.STUCK:
            reporter.report(JobStuck(running.job.queue, running.job.id, running.job.attempt))
            running.machine.settled()
            running.tray.put(running, judge_cancelled(running), trio.current_time())
        else:
            running.cancel(CancelReason.EXPIRED if due is Due.EXPIRED else CancelReason.LEASE_LOST)


async def _beat(running: Running, renewer: "Renewer") -> None:
    """Renew once; wait for the answer no longer than until something else is due."""
    sent_at = trio.current_time()
    running.machine.beat_sent(sent_at)
    with trio.move_on_at(running.machine.next()[0]):
        held = await renewer.renew(running.job.queue, running.lease)
        if held is True:
            running.machine.beat_confirmed(sent_at)
        elif held is False:
            running.cancel(CancelReason.LEASE_LOST)


@attrs.define(eq=False)
class _Request:
    queue: str
    lease: Lease
    answered: trio.Event = attrs.field(factory=trio.Event, init=False)
    held: bool | None = attrs.field(default=None, init=False)


@attrs.define(eq=False)
class Renewer:
    """Writes the renewals of one process: all that came since the last answer, in one statement."""

    _port: WorkPort
    _requests: list[_Request] = attrs.field(factory=list, init=False)
    _bell: Doorbell = attrs.field(factory=Doorbell, init=False)

    async def renew(self, queue: str, lease: Lease) -> bool | None:
        """Renew a lease: True if it is held, False if it is lost, None if the database did not answer."""
        request = _Request(queue, lease)
        self._requests.append(request)
        self._bell.ring()
        await request.answered.wait()
        return request.held

    async def run(self) -> None:
        """Answer requests as they come."""
        while True:
            await self._bell.wait()
            requests, self._requests = self._requests, []
            try:
                held = await self._port.renew(_by_queue(requests))
            except DatabaseUnavailable:
                held = None
            for request in requests:
                request.held = None if held is None else request.lease.id in held
                request.answered.set()


def _by_queue(requests: Sequence[_Request]) -> dict[str, list[Lease]]:
    leases: dict[str, list[Lease]] = {}
    for request in requests:
        leases.setdefault(request.queue, []).append(request.lease)
    return leases
