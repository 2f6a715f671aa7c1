"""An attempt that this process has leased: its state, and what the actors need to cancel it and to settle it."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

import attrs
import trio

from trioboss.machines.attempt import Action, AttemptMachine, CancelReason, Failed, Outcome
from trioboss.machines.lease import LeaseMachine
from trioboss.model.job import Job, Lease

__all__ = ["ClaimedBatch", "HeartbeatHandle", "OutcomeSink", "Running", "by_queue", "superseded"]


class OutcomeSink(Protocol):
    """The completer of the queue from which a job was claimed."""

    def put(self, running: "Running", action: Action, now: float) -> None:
        """Take an attempt about which something has to be settled, counted or reported."""

    def report_late(self, running: "Running", failed: Failed) -> None:
        """Report that a handler has failed after the end of its attempt was decided."""


class HeartbeatHandle(Protocol):
    """The heartbeat of a job, as its attempt sees it."""

    def wake(self) -> None:
        """The attempt was cancelled: the lease needs something else next."""

    def stop(self) -> None:
        """The handler has ended."""


@attrs.define(eq=False)
class Running(AttemptMachine):
    """One attempt of this process, from its claim to its settlement.

    The machine decides, and this class carries out: its methods are commands, those of the machine events. It extends
    the machine instead of holding one, because a second object for each job would cost 0.1 µs.
    """

    job: Job
    lease: Lease
    completer: OutcomeSink
    claim_sent_at: float
    scope: trio.CancelScope | None = attrs.field(default=None, init=False)
    """The scope of its slot, while its handler runs: afterwards the scope serves other jobs."""
    batch_members: "Sequence[Running]" = attrs.field(default=(), init=False)
    """All attempts of the handler's call, if it has several."""
    started_at: float = attrs.field(default=0.0, init=False)
    ended_at: float = attrs.field(default=0.0, init=False)
    heartbeat: HeartbeatHandle | None = attrs.field(default=None, init=False)
    """Only jobs that last have one."""
    _lease_machine: LeaseMachine | None = attrs.field(default=None, init=False)

    def __repr__(self) -> str:
        return f"<Running {self.job.queue!r} {self.job.id} attempt {self.job.attempt}>"

    @property
    def lease_machine(self) -> LeaseMachine:
        """The state of its lease. Jobs that end at once never need one."""
        if self._lease_machine is None:
            job = self.job
            self._lease_machine = LeaseMachine(
                self.claim_sent_at, job.expire_in, job.heartbeat, job.auto_heartbeat
            )
        return self._lease_machine

    @property
    def waited(self) -> float:
        """Seconds from when the job could have started until its handler was called. The time until the claim is
        measured by the clock of the database, the time after it by the clock of this process: the two are never
        compared.
        """
        job = self.job
        unclaimed = (self.lease.started_on - max(job.start_after, job.created_on)).total_seconds()
        return max(0.0, unclaimed) + max(0.0, self.started_at - self.claim_sent_at)

    @property
    def ran(self) -> float:
        """Seconds that its handler took."""
        return self.ended_at - self.started_at

    def start(self, scope: trio.CancelScope, batch: "Sequence[Running]", now: float) -> None:
        """Its handler is called, in the scope of a slot."""
        self.started()
        self.scope = scope
        self.started_at = now
        if len(batch) > 1:
            self.batch_members = tuple(batch)

    def cancel(self, reason: CancelReason) -> None:
        """Cancel the handler; an attempt in the buffer is settled at once. A call for several jobs is cancelled only
        when all of them are: there is one scope for all.
        """
        action = self.cancelled(reason)
        if action is Action.NOTHING:
            return
        if action is Action.CANCEL_HANDLER:
            self.lease_machine.cancelled(trio.current_time())
            assert self.scope is not None
            if all(member.reason is not None for member in self.batch_members):
                self.scope.cancel()
        else:
            self.completer.put(self, action, trio.current_time())
        if self.heartbeat is not None:
            self.heartbeat.wake()

    def end(self, outcome: Outcome | None, now: float) -> None:
        """Its handler has ended, with no outcome if it was cancelled."""
        action = self.ended(outcome)
        if type(outcome) is Failed and outcome is not self.outcome:
            self.completer.report_late(self, outcome)
        self.scope = None
        if self.heartbeat is not None:
            self.heartbeat.stop()
        # Also if there is nothing to do: a dispatcher that stops waits for the last of its attempts to end.
        self.completer.put(self, action, now)

    def give_up(self) -> None:
        """Its handler was cancelled and does not end: settle the attempt without it."""
        self.completer.put(self, self.given_up(), trio.current_time())


@attrs.frozen(eq=False)
class ClaimedBatch:
    """The jobs of one claim. Their number is known before they are decoded."""

    jobs: Sequence[Job]
    completer: OutcomeSink
    claim_sent_at: float

    def __len__(self) -> int:
        return len(self.jobs)

    def unpack(self) -> list[Running]:
        """Decode the jobs."""
        completer, sent_at = self.completer, self.claim_sent_at
        return [Running(job, _lease_of(job), completer, sent_at) for job in self.jobs]


def _lease_of(job: Job) -> Lease:
    assert job.started_on is not None
    return Lease(job.id, job.attempt, job.started_on)


def superseded(attempts: Collection[Running]) -> set[Running]:
    """The attempts for whose job there is a later attempt among them: their leases are lost.

    The database is asked by job, so it must not be asked for two attempts of one job at the same time.
    """
    latest: dict[UUID, Running] = {}
    for running in attempts:
        other = latest.setdefault(running.job.id, running)
        if other is not running and _age(running) > _age(other):
            latest[running.job.id] = running
    return set() if len(latest) == len(attempts) else set(attempts) - set(latest.values())


def _age(running: Running) -> tuple[int, datetime]:
    # The number alone may have been issued twice: claims commit asynchronously, and a crash of the server can lose one.
    return running.lease.attempt, running.lease.started_on


def by_queue(attempts: Iterable[Running]) -> dict[str, list[Lease]]:
    """The leases of these attempts, by queue."""
    leases: dict[str, list[Lease]] = {}
    for running in attempts:
        leases.setdefault(running.job.queue, []).append(running.lease)
    return leases
