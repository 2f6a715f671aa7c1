"""WorkPort in memory: a database that answers, fails or hangs as a test asks.

It has no policies: a job is ready, deferred, active or settled. Settlements and renewals are fenced.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import attrs
import trio
import trio.testing

from trioboss.actors.ports import Registration
from trioboss.errors import DatabaseUnavailable, LeaseLost
from trioboss.model.job import OPTIONS, Job, Lease
from trioboss.model.queue import QueueSettings
from trioboss.model.settle_and_claim import ClaimRequest, ClaimResult, Failure, SettledAndClaimed, Settlements
from trioboss.model.states import JobState, Readiness

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def make_job(data: Any = None, **options: Any) -> Job:
    """A job as it is in the database before it is claimed."""
    values: dict[str, Any] = {
        "id": uuid4(),
        "queue": "q",
        "data": data,
        "state": JobState.CREATED,
        "readiness": Readiness.READY,
        "priority": 0,
        "attempt": 0,
        "retry_count": 0,
        "created_on": NOON,
        "start_after": NOON,
        "lease_extensions": 0,
        "policy": "standard",
        "seq": 1,
    }
    fields = dict.fromkeys(field.name for field in attrs.fields(Job))
    defaults = {name: getattr(QueueSettings(), name) for name in OPTIONS}
    return Job(**(fields | defaults | values | options))


@attrs.frozen
class SentStatement:
    """One call of settle_and_claim."""

    at: float
    queue: str
    settlements: Settlements
    request: ClaimRequest | None
    notify: str | None


@attrs.define(eq=False)
class Fault:
    """How one call fails: before it is executed, or after, so that only the answer is lost."""

    error: Exception | None = attrs.field(factory=lambda: DatabaseUnavailable("scripted"))
    after: bool = False
    seconds: float = 0.0
    """How long the call takes; with infinity it hangs."""

    async def strike(self) -> None:
        await trio.sleep(self.seconds)
        if self.error is not None:
            raise self.error


@attrs.define(eq=False)
class ScriptedWork:
    """The database of the workers, in memory. Times are those of trio."""

    jobs: dict[str, deque[Job]] = attrs.field(factory=dict)
    deferred: list[tuple[float, Job]] = attrs.field(factory=list)
    active: dict[UUID, Job] = attrs.field(factory=dict)
    outcomes: list[tuple[UUID, int, Any]] = attrs.field(factory=list)
    """The accepted outcomes: id, attempt, and the output as text, the Failure, "released" or "recovered"."""
    statements: list[SentStatement] = attrs.field(factory=list)
    renewals: list[tuple[float, set[UUID]]] = attrs.field(factory=list)
    locked: set[UUID] = attrs.field(factory=set)
    """Jobs whose rows an open transaction has locked."""
    checks: list[tuple[float, set[UUID]]] = attrs.field(factory=list)
    registered: set[UUID] = attrs.field(factory=set)
    calls: list[tuple[str, Any]] = attrs.field(factory=list)
    faults: dict[str, deque[Fault]] = attrs.field(factory=dict)
    changed: trio.Event = attrs.field(factory=trio.Event)
    retries: bool = True
    """A job that failed is ready again at once."""
    took: float = 0.0
    """How long each claim takes the database, in seconds, without any delay here."""

    # -- for tests

    def add(self, *jobs: Job) -> None:
        """Add jobs that can run now."""
        for job in jobs:
            self.jobs.setdefault(job.queue, deque()).append(job)

    def send(self, count: int = 1, **options: Any) -> list[Job]:
        """Create jobs that can run now."""
        jobs = [make_job(i, **options) for i in range(count)]
        self.add(*jobs)
        return jobs

    def inject(self, call: str, *faults: Fault) -> None:
        """Let the next calls of that name fail, each in its way."""
        self.faults.setdefault(call, deque()).extend(faults)

    def lose(self, job: Job) -> None:
        """End the lease, as if the job was cancelled or rescued elsewhere."""
        del self.active[job.id]

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition holds after some call."""
        while not condition():
            await self.changed.wait()

    async def _arrive(self, call: str) -> Fault | None:
        self._tell()
        faults = self.faults.get(call)
        fault = faults.popleft() if faults else None
        if fault is not None and not fault.after:
            await fault.strike()
        await trio.lowlevel.checkpoint()
        return None if fault is None or not fault.after else fault

    async def until_running(self, count: int = 1) -> None:
        """Wait until so many jobs are claimed and all tasks wait."""
        await self.until(lambda: len(self.active) == count)
        await trio.testing.wait_all_tasks_blocked()

    def _tell(self) -> None:
        self.changed.set()
        self.changed = trio.Event()

    async def _leave(self, fault: Fault | None) -> None:
        self._tell()
        if fault is not None:
            await fault.strike()

    def _holds(self, lease: Lease) -> bool:
        job = self.active.get(lease.id)
        return job is not None and job.attempt == lease.attempt

    # -- WorkPort

    async def settle_and_claim(
        self,
        queue: str,
        settlements: Settlements,
        request: ClaimRequest | None,
        *,
        notify: str | None,
    ) -> SettledAndClaimed:
        now = trio.current_time()
        assert request is None or request.worker in self.registered
        self.statements.append(SentStatement(now, queue, settlements, request, notify))
        fault = await self._arrive("settle_and_claim")
        settled = self._settle(settlements)
        claim = None if request is None else self._claim(queue, request)
        await self._leave(fault)
        return SettledAndClaimed(settled, claim)

    def _settle(self, settlements: Settlements) -> dict[UUID, JobState]:
        settled = {}
        entries: list[tuple[Lease, Any]] = [*settlements.completed, *settlements.failed]
        for lease, outcome in [*entries, *((lease, "released") for lease in settlements.released)]:
            if self._holds(lease):
                job = self.active.pop(lease.id)
                self.outcomes.append((lease.id, lease.attempt, outcome))
                settled[lease.id] = self._state_after(job, outcome)
        return settled

    def _state_after(self, job: Job, outcome: Any) -> JobState:
        if isinstance(outcome, Failure):
            if not self.retries or outcome.dead:
                return JobState.FAILED
        elif outcome != "released":
            return JobState.COMPLETED
        self.add(attrs.evolve(job, state=JobState.RETRY, readiness=Readiness.READY))
        return JobState.RETRY

    def _claim(self, queue: str, request: ClaimRequest) -> ClaimResult:
        now = trio.current_time()
        if request.promote_due:
            self.add(*(job for due, job in self.deferred if due <= now and job.queue == queue))
            self.deferred = [(due, job) for due, job in self.deferred if due > now or job.queue != queue]
        ready = self.jobs.get(queue, deque())
        claimed = []
        while ready and len(claimed) < request.limit:
            job = ready.popleft()
            started = NOON + timedelta(seconds=now)
            active = {"state": JobState.ACTIVE, "readiness": Readiness.ACTIVE, "started_on": started}
            job = attrs.evolve(job, **active, attempt=job.attempt + 1, worker=request.worker)
            self.active[job.id] = job
            claimed.append(job)
        dues = [due for due, job in self.deferred if job.queue == queue]
        next_due = max(0.0, min(dues) - now) if dues else None
        return ClaimResult(claimed, next_due, "standard", took=self.took)

    async def bulk_poll(self, worker: UUID, queues: Sequence[str]) -> dict[str, float]:
        assert worker in self.registered
        self.calls.append(("bulk_poll", list(queues)))
        fault = await self._arrive("bulk_poll")
        now = trio.current_time()
        dues = {job.queue: max(0.0, due - now) for due, job in self.deferred}
        dues |= {queue: 0.0 for queue, jobs in self.jobs.items() if jobs}
        await self._leave(fault)
        return {queue: due for queue, due in dues.items() if queue in queues}

    async def recover_unseen(self, queue: str, worker: UUID, known: Sequence[UUID]) -> None:
        self.calls.append(("recover_unseen", (queue, set(known))))
        fault = await self._arrive("recover_unseen")
        for job in list(self.active.values()):
            if job.queue == queue and job.worker == worker and job.id not in known:
                del self.active[job.id]
                self.outcomes.append((job.id, job.attempt, "recovered"))
                self.add(attrs.evolve(job, state=JobState.RETRY, readiness=Readiness.READY))
        await self._leave(fault)

    async def renew(self, leases: Mapping[str, Sequence[Lease]]) -> dict[UUID, bool]:
        asked = [lease for each in leases.values() for lease in each]
        self.renewals.append((trio.current_time(), {lease.id for lease in asked}))
        fault = await self._arrive("renew")
        held = {lease.id: lease.id not in self.locked for lease in asked if self._holds(lease)}
        await self._leave(fault)
        return held

    async def check(self, leases: Mapping[str, Sequence[Lease]]) -> set[UUID]:
        asked = [lease for each in leases.values() for lease in each]
        self.checks.append((trio.current_time(), {lease.id for lease in asked}))
        fault = await self._arrive("check")
        held = {lease.id for lease in asked if self._holds(lease)}
        await self._leave(fault)
        return held

    async def register(self, registration: Registration) -> None:
        fault = await self._arrive("register")
        self.registered.add(registration.worker)
        await self._leave(fault)

    async def unregister(self, worker: UUID) -> None:
        fault = await self._arrive("unregister")
        self.registered.discard(worker)
        await self._leave(fault)

    async def get_queues(self) -> list[Any]:
        raise NotImplementedError

    # -- LeasePort

    async def extend(self, queue: str, lease: Lease, seconds: Any) -> float:
        fault = await self._arrive("extend")
        job = self._held(queue, lease)
        self.active[lease.id] = attrs.evolve(job, expire_in=job.expire_in + seconds)
        await self._leave(fault)
        return self.active[lease.id].expire_in

    async def report_progress(self, queue: str, lease: Lease, value: Any) -> None:
        await self._record("progress", queue, lease, value)

    async def complete(self, queue: str, lease: Lease, output: str) -> bool:
        fault = await self._arrive("complete")
        held = self._holds(lease)
        if held:
            self.calls.append(("complete", output))
            del self.active[lease.id]
            self.outcomes.append((lease.id, lease.attempt, output))
        await self._leave(fault)
        return held

    async def _record(self, call: str, queue: str, lease: Lease, value: Any) -> None:
        fault = await self._arrive(call)
        self._held(queue, lease)
        self.calls.append((call, value))
        await self._leave(fault)

    def _held(self, queue: str, lease: Lease) -> Job:
        if not self._holds(lease):
            raise LeaseLost(queue, [lease.id])
        return self.active[lease.id]


def outputs(port: ScriptedWork) -> dict[Any, Any]:
    """The accepted outcomes by id."""
    return {id: outcome for id, _, outcome in port.outcomes}


def ids(jobs: Iterable[Job]) -> list[UUID]:
    return [job.id for job in jobs]
