"""Keeps the leases of running jobs: renews them, and cancels a job before its lease ends.

A job gets a heartbeat, which is a task of its own, a tenth of a second after its claim. Most jobs have ended by then
and need none: to start a task costs more than such a job.
"""

import math
from collections import deque
from collections.abc import Sequence

import attrs
import trio

from trioboss.actors.actor import Doorbell
from trioboss.actors.ports import WorkPort
from trioboss.actors.reporter import Reporter
from trioboss.actors.running import Running, by_queue, superseded
from trioboss.errors import DatabaseUnavailable
from trioboss.events import ErrorEvent, JobStuck, LoopBlocked
from trioboss.machines.attempt import CancelReason
from trioboss.machines.lease import Due

__all__ = ["Heartbeat", "LeaseWatchers", "Renewer"]

# Seconds from its claim until a job gets its heartbeat. The first renewal of the shortest heartbeat, of one second, is
# due after a quarter of a second.
_HEARTBEAT_DELAY = 0.1
_TICK = 1.0  # seconds between checks whether the event loop is blocked, as long as a job has a heartbeat
_LAG = 1.0  # seconds by which a timer may be late before the event loop counts as blocked
_TIMEOUT = 5.0  # seconds that the database has to answer a renewal


@attrs.define(eq=False)
class LeaseWatchers:
    """Starts a heartbeat for each job that lasts, also while it waits in the buffer."""

    _waiting: deque[tuple[float, Running]] = attrs.field(factory=deque, init=False)
    """Attempts with the time when each gets its heartbeat, in the order of their claims."""
    _count: int = attrs.field(default=0, init=False)
    """Heartbeats that run."""
    _bell: Doorbell = attrs.field(factory=Doorbell, init=False)

    def add(self, attempts: Sequence[Running]) -> None:
        """These are leased now."""
        due_at = trio.current_time() + _HEARTBEAT_DELAY
        if not self._waiting:
            self._bell.ring()
        self._waiting.extend([(due_at, running) for running in attempts])

    async def run(self, nursery: trio.Nursery, renewer: "Renewer", reporter: Reporter) -> None:
        """Start heartbeats, and report when a handler has blocked the event loop."""
        while True:
            due = self._next_due()
            rung = await self._bell.wait_until(due)
            now = trio.current_time()
            if (lag := now - due) > _LAG:
                reporter.report(LoopBlocked(lag))
            if rung:
                continue  # the next due time has changed
            while self._waiting and self._waiting[0][0] <= now:
                running = self._waiting.popleft()[1]
                if not running.is_decided:
                    nursery.start_soon(self._keep, Heartbeat(running, renewer, reporter))

    def _next_due(self) -> float:
        tick = trio.current_time() + _TICK if self._count else math.inf
        return min(tick, self._waiting[0][0]) if self._waiting else tick

    async def _keep(self, heartbeat: "Heartbeat") -> None:
        self._count += 1
        if self._count == 1:
            self._bell.ring()  # the ticks begin
        try:
            await heartbeat.run()
        finally:
            self._count -= 1


@attrs.define(eq=False)
class Heartbeat:
    """The heartbeat of one job, until its handler has ended."""

    _running: Running
    _renewer: "Renewer"
    _reporter: Reporter
    _bell: Doorbell = attrs.field(factory=Doorbell, init=False)
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)

    def __attrs_post_init__(self) -> None:
        self._running.heartbeat = self

    def wake(self) -> None:
        """The attempt was cancelled: see what its lease needs now."""
        self._bell.ring()

    def stop(self) -> None:
        """The handler has ended."""
        self._scope.cancel()

    async def run(self) -> None:
        """Do what the lease needs, whenever it is due."""
        with self._scope:
            while not self._running.is_decided:
                at, due = self._running.lease_machine.next(held=self._running.needs_lease)
                now = trio.current_time()
                if now >= at:
                    self._act(due, now)
                else:
                    # Asked again afterwards: the lease may have been renewed or extended, the job cancelled.
                    await self._bell.wait_until(at)
            # A handler that was given up can still block the event loop: the ticks go on until it ends.
            await trio.sleep_forever()

    def _act(self, due: Due, now: float) -> None:
        running = self._running
        match due:
            case Due.BEAT:
                running.lease_machine.beat_sent(now)
                self._renewer.renew(running)
            case Due.STUCK:
                job = running.job
                self._reporter.report(JobStuck(job.queue, job.id, job.attempt))
                running.give_up()
            case Due.UNCONFIRMED if running.job.auto_heartbeat:
                running.cancel(CancelReason.LEASE_LOST)
            case _:
                # A handler that has to renew its lease itself, and did not, has failed. A lease that this worker gives
                # up is released by recovery and spends no retry, so the job could be tried for ever.
                running.cancel(CancelReason.EXPIRED)


@attrs.define(eq=False)
class Renewer:
    """Writes the renewals of one worker: all that came since the last answer, in one statement."""

    _port: WorkPort
    _reporter: Reporter
    _requested: dict[Running, None] = attrs.field(factory=dict, init=False)
    _bell: Doorbell = attrs.field(factory=Doorbell, init=False)

    def renew(self, running: Running) -> None:
        """Renew a lease soon. An attempt whose lease turns out to be lost is cancelled."""
        self._requested[running] = None
        self._bell.ring()

    async def run(self) -> None:
        """Renew what is requested. A renewal that got no answer is repeated by the next heartbeat."""
        while True:
            await self._bell.wait()
            requested, self._requested = list(self._requested), {}
            for running in superseded(requested):
                running.cancel(CancelReason.LEASE_LOST)
                requested.remove(running)
            settlements = [running.manual for running in requested]
            sent_at = trio.current_time()
            try:
                with trio.fail_after(_TIMEOUT):
                    held = await self._port.renew(by_queue(requested))
            except (DatabaseUnavailable, trio.TooSlowError) as error:
                self._reporter.report(
                    ErrorEvent("heartbeat", str(error) or f"no answer within {_TIMEOUT:g} s")
                )
                continue
            for running, settlement in zip(requested, settlements, strict=True):
                renewed = held.get(running.job.id)
                if renewed is None:
                    running.cancel(CancelReason.LEASE_LOST)
                # ``renewed`` is False if an open transaction has locked the row. If that is the handler's own
                # settlement, nobody else can take the job as long as it is open, and the lease counts as confirmed. If
                # it is another transaction, it may settle the job at any moment, and the lease does not.
                elif renewed or settlement is not None:
                    running.lease_machine.beat_confirmed(sent_at)
                if renewed and settlement is not None:
                    running.rolled_back(settlement)
