"""Keeps the leases of running jobs: renews them, and stops a job before its lease ends.

Every job that lasts has a heartbeat actor of its own. Jobs that are over before it would have anything to do
never get one: starting a task costs more than they do.
"""

import math
from collections import deque
from collections.abc import Sequence

import attrs
import trio

from trioboss.actors.doorbell import Doorbell
from trioboss.actors.ports import WorkPort
from trioboss.actors.reporter import Reporter
from trioboss.actors.runner import judge_cancelled
from trioboss.actors.running import CancelReason, Running, by_queue, superseded
from trioboss.errors import DatabaseUnavailable
from trioboss.events import ErrorEvent, JobStuck, LoopBlocked
from trioboss.machines.lease import Due

__all__ = ["LeaseWatchers", "Renewer", "keep_lease", "settle_without_handler"]

_HEARTBEAT_DELAY = (
    0.1  # seconds from its claim until a job gets its heartbeat; shorter than any interval can be
)
_TICK = 1.0  # seconds between looks whether the event loop is blocked, as long as a job has a heartbeat
_LAG = 1.0  # seconds by which a timer may be late before the event loop counts as blocked
_TIMEOUT = 5.0  # seconds a renewal may take


@attrs.define(eq=False)
class LeaseWatchers:
    """Jobs as they are leased, in order; those that outlive their youth get a heartbeat each, also in the buffer."""

    _waiting: deque[tuple[float, Running]] = attrs.field(factory=deque, init=False)
    _kept: int = attrs.field(default=0, init=False)
    """Jobs that have a heartbeat."""
    _bell: Doorbell = attrs.field(factory=Doorbell, init=False)

    def add(self, jobs: Sequence[Running]) -> None:
        """These are leased now."""
        due_at = trio.current_time() + _HEARTBEAT_DELAY
        if not self._waiting:
            self._bell.ring()
        self._waiting.extend([(due_at, running) for running in jobs])

    async def run(self, nursery: trio.Nursery, renewer: "Renewer", reporter: Reporter) -> None:
        """Start heartbeats for the jobs that last, and see whether one of them holds up the event loop."""
        while True:
            due = self._next_due()
            is_rung = await self._bell.wait_until(due)
            now = trio.current_time()
            if (lag := now - due) > _LAG:
                reporter.report(LoopBlocked(lag))
            if is_rung:
                continue  # what is due next has changed
            while self._waiting and self._waiting[0][0] <= now:
                running = self._waiting.popleft()[1]
                if not running.ended:
                    running.bell = Doorbell()
                    nursery.start_soon(self._keep, running, renewer, reporter)

    def _next_due(self) -> float:
        tick = trio.current_time() + _TICK if self._kept else math.inf
        return min(tick, self._waiting[0][0]) if self._waiting else tick

    async def _keep(self, running: Running, renewer: "Renewer", reporter: Reporter) -> None:
        self._kept += 1
        if self._kept == 1:
            self._bell.ring()
        try:
            await keep_lease(running, renewer, reporter)
        finally:
            self._kept -= 1


async def keep_lease(running: Running, renewer: "Renewer", reporter: Reporter) -> None:
    """The heartbeat of one job, until its handler has ended."""
    assert running.bell is not None
    while not running.ended:
        at, due = running.machine.next(held=running.by_hand is None)
        now = trio.current_time()
        if now < at:
            # Then it looks again: the lease may have been touched or extended in the meantime, the job cancelled.
            await running.bell.wait_until(at)
        elif due is Due.BEAT:
            running.machine.beat_sent(now)
            renewer.renew(running)
        elif due is Due.STUCK:
            reporter.report(JobStuck(running.job.queue, running.job.id, running.job.attempt))
            settle_without_handler(running)
        else:
            # Whose handler beats itself and has not done so, has failed: otherwise it could go on like that for ever.
            failed = due is Due.EXPIRED or not running.job.auto_heartbeat
            running.cancel(CancelReason.EXPIRED if failed else CancelReason.LEASE_LOST)
            if not running.has_begun:
                settle_without_handler(running)


def settle_without_handler(running: Running) -> None:
    """Settle an attempt whose handler does not end."""
    running.machine.settled()
    running.completer.put(running, judge_cancelled(running), trio.current_time())


@attrs.define(eq=False)
class Renewer:
    """Writes the renewals of one process: all that came since the last answer, in one statement."""

    _port: WorkPort
    _reporter: Reporter
    _asked: dict[Running, None] = attrs.field(factory=dict, init=False)
    _bell: Doorbell = attrs.field(factory=Doorbell, init=False)

    def renew(self, running: Running) -> None:
        """Renew a lease soon. Its machine is told when that is confirmed; who is found to have lost it is stopped."""
        self._asked[running] = None
        self._bell.ring()

    async def run(self) -> None:
        """Renew what is asked for. Who got no answer asks again with its next beat."""
        while True:
            await self._bell.wait()
            asked, self._asked = list(self._asked), {}
            for running in superseded(asked):
                running.cancel(CancelReason.LEASE_LOST)
                asked.remove(running)
            sent_at = trio.current_time()
            try:
                with trio.fail_after(_TIMEOUT):
                    held = await self._port.renew(by_queue(asked))
            except (DatabaseUnavailable, trio.TooSlowError) as error:
                self._reporter.report(ErrorEvent("heartbeat", str(error) or "no answer in time"))
                continue
            for running in asked:
                if running.job.id in held:
                    running.machine.beat_confirmed(sent_at)
                else:
                    running.cancel(CancelReason.LEASE_LOST)
