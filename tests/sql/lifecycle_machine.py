"""How a step of the lifecycle machine is made: first in the model, then in the database, then compared.

A statement that the database would let wait for another transaction is left out; lifecycle_waiting.py has those.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from hypothesis.stateful import invariant
from lifecycle_checks import HISTORY, THROTTLE, VIOLATIONS, is_close
from lifecycle_frame import LifecycleFrame, as_new_job, as_row, assert_same, fence, lease_of
from lifecycle_sessions import JOBS, OWN, Row
from lifecycle_values import ACTIVE, Layer, ModelQueue, SendRequest

from trioboss.errors import JobNotFound, LeaseLost
from trioboss.model.job import Job, Lease
from trioboss.model.settle_and_claim import ClaimRequest, Failure
from trioboss.model.states import Readiness
from trioboss.postgres.operation import Operation

_INSERT = """
    INSERT INTO trioboss.job (id, name, singleton_key, priority, start_after, unique_until)
    VALUES (%s, %s, %s, %s, %s, %s)
"""
_UPDATE = "UPDATE trioboss.live_job SET readiness = %s WHERE queue = %s AND id = %s"
_DELETE = "DELETE FROM trioboss.live_job WHERE queue = %s AND id = ANY (%s)"


class LifecycleMachine(LifecycleFrame):
    """The steps. The rules that choose among them are in test_lifecycle_machine.py."""

    # -- sending

    def send(self, session: int, request: SendRequest) -> None:
        layer = self.begin(session)
        expected = request.id if self.model.send(layer, request) else None
        if self.would_wait(layer, session):
            return
        assert self.run_send(session, request) == expected
        self.saw_sent(layer, [request])
        self.finish(layer, session)

    def send_again(self, session: int, request: SendRequest) -> None:
        """The same id twice is one job, whatever became of the first."""
        layer = self.begin(session)
        if layer.get(request.id) is None:
            return  # deleted in this very transaction
        layer.targets.add(request.id)
        self.model.send(layer, request)
        layer.jobs, layer.throttle = {}, {}  # nothing comes of it, but it waits like any other
        if not self.would_wait(layer, session):
            assert self.run_send(session, request) == request.id
            self.finish(layer, session)

    def run_send(self, session: int, request: SendRequest) -> UUID | None:
        return self.sessions.run(session, lambda own: self.send_operation(request, own=own))

    def send_operation(self, request: SendRequest, *, own: bool) -> Operation[UUID | None]:
        send = self.sessions.store.sending.send
        return send(request.queue, as_new_job(request), own=own, unique_until=request.unique_until)

    def insert(self, session: int, queue: str, requests: list[SendRequest]) -> None:
        layer = self.begin(session)
        expected = self.model.insert(layer, requests)
        if self.would_wait(layer, session):
            return
        jobs = [as_new_job(request) for request in requests]
        assert self.sessions.insert(session, queue, jobs) == expected
        self.saw_sent(layer, requests)
        self.finish(layer, session)

    def saw_sent(self, layer: Layer, requests: Sequence[SendRequest]) -> None:
        for request in requests:
            if job := layer.jobs.get(request.id):
                self.witness.saw_sent(request.id, irregular=job.readiness is Readiness.DEFERRED)

    # -- plain SQL

    def insert_row(self, session: int, request: SendRequest) -> None:
        """INSERT through the view job; a job that the policy refuses is an error there."""
        layer = self.begin(session)
        sent = self.model.send(layer, request)
        if self.would_wait(layer, session):
            return
        values = [
            request.id,
            request.queue,
            request.key,
            request.priority,
            self.model.now,
            request.unique_until,
        ]
        assert self.run_plain(session, _INSERT, values) == sent
        if sent:
            self.saw_sent(layer, [request])
            self.finish(layer, session)

    def move_row(self, session: int, id: UUID, readiness: Readiness) -> None:
        """UPDATE of the readiness of a queued job."""
        layer = self.begin(session)
        job = layer.get(id)
        if job is None or not job.is_queued:
            return
        # A trigger sets the slot, so the statement waits for everybody who changes the same slots, and for owners.
        moved = self.model.move(layer, job, readiness)
        others = {id for other in layer.all(job.queue) if other.key == job.key for id in [other.id]}
        if self.would_wait(layer, session) or others & self.locked(session):
            return
        assert self.run_plain(session, _UPDATE, [readiness, job.queue, id]) == moved
        self.witness.irregular.add(id)
        if moved:
            self.finish(layer, session)

    def delete_rows(self, session: int, queue: str, ids: Sequence[UUID]) -> None:
        layer = self.begin(session)
        self.model.delete_rows(layer, queue, ids)
        if not self.would_wait(layer, session):
            assert self.run_plain(session, _DELETE, [queue, list(ids)])
            self.finish(layer, session)

    def run_plain(self, session: int, statement: str, values: Sequence[object]) -> bool:
        """Run a statement of a plain SQL writer; False if a unique index refused it."""
        connection = self.sessions.connections[session]
        if session == OWN:
            savepoint = nullcontext()
        else:
            connection.execute("SELECT")  # within a transaction the context manager makes a savepoint
            savepoint = connection.transaction()
        try:
            with savepoint:
                connection.execute(self.sessions.qualified(statement), values)
        except psycopg.errors.UniqueViolation:
            return False
        return True

    # -- claiming

    def claim(self, session: int, queue: ModelQueue, limit: int, *, by_priority: bool = True) -> list[Job]:
        """Claim, and get exactly the jobs that can run according to the model, in its order."""
        layer = self.begin(session)
        # Promotion and admission are committed, by our own session; for a caller's claim both go before it.
        prepared = Layer(self.model.committed)
        self.model.promote_due(prepared, queue.name, self.locked())
        locked_head, heads = False, False
        if queue.policy.is_keyed:
            heads = session == OWN and by_priority
            if not heads:
                locked_head = self.model.admit(prepared, queue.name, limit, by_priority, self.locked())
        prepared.merge()
        locked = self.locked(session)
        expected, passed = self.model.claim(layer, queue.name, limit, by_priority, locked, heads=heads)
        request, operation = ClaimRequest(limit, by_priority=by_priority), self.sessions.store.claiming.claim
        before = self.sessions.rows() if queue.is_fifo else []
        claim = self.sessions.run(session, lambda own: operation(queue.name, request, own=own))

        assert [job.id for job in claim.jobs] == expected
        for job in claim.jobs:
            assert_same(job, layer.get(job.id))
            if queue.is_fifo and any(row.id == job.id for row in before):
                self.witness.check_order(job.id, before, commit_order=queue.commit_order)
        self.finish(layer, session)
        self.claimed += claim.jobs
        if session == OWN:
            self.check_next_due(claim.next_due, queue.name, locked_head=locked_head or passed)
        return list(claim.jobs)

    def check_next_due(self, next_due: float | None, queue: str, *, locked_head: bool) -> None:
        if locked_head:  # the next job of its key could not be admitted: claim again soon
            assert next_due is not None
            assert next_due <= 0.05
        else:
            assert is_close(next_due, self.model.next_due(self.model.committed, queue))

    # -- settling

    def settle(self, name: str, session: int, jobs: Sequence[Job], *, by_id: bool) -> None:
        """Settle leases, some of them stale: those are named in the error, and change nothing."""
        queue = jobs[0].queue
        jobs = list({job.id: job for job in jobs if job.queue == queue}.values())
        layer = self.begin(session)
        current = self.model.current(layer, [fence(job, by_id=by_id) for job in jobs])
        getattr(self.model, name)(layer, current)
        if self.would_wait(layer, session):
            return
        held = {job.id for job in current}
        lost = {job.id for job in jobs} - held
        targets = [job.id if by_id else job for job in jobs]
        try:
            settled = self.sessions.run(session, lambda own: self.operations(name)(queue, targets, own=own))
        except (LeaseLost, JobNotFound) as error:
            assert set(error.ids) == lost  # noqa: PT017
            assert isinstance(error, JobNotFound) == by_id  # noqa: PT017
            assert lost
            assert not (by_id and held)
        else:
            assert set(settled.ids) == held
            assert by_id or not lost
        self.finish(layer, session)

    def operations(self, name: str) -> Callable[..., Any]:
        manual = self.sessions.store.manual
        return {
            "complete": lambda queue, targets, own: manual.complete(queue, targets, {"done": 1}, own=own),
            "fail": lambda queue, targets, own: manual.fail(queue, targets, "an error", own=own),
            "touch": self.sessions.store.leases.touch,
        }[name]

    @property
    def held(self) -> list[Job]:
        """Leases that are in force, as far as is committed."""
        return [job for job in self.claimed if self._active_since(job) == job.started_on]

    @property
    def outlived(self) -> list[Job]:
        """Leases of jobs that are active again, by another lease."""
        return [job for job in self.claimed if self._active_since(job) not in (None, job.started_on)]

    def _active_since(self, job: Job) -> datetime | None:
        """Since when the job is active, if it is."""
        now = self.model.committed.get(job.id)
        return now.started_on if now is not None and now.state is ACTIVE else None

    def release(self, queue: str, leases: Sequence[Lease]) -> None:
        layer = self.begin(OWN)
        current = self.model.current(layer, [(held.id, held.attempt, held.started_on) for held in leases])
        self.model.release(layer, current)
        if not self.would_wait(layer, OWN):
            self.sessions.run(OWN, lambda own: self.sessions.store.settling.release_leases(queue, leases))
            self.finish(layer, OWN)

    def expire(self, queue: str) -> None:
        """End the leases that ran out by the terms of their claim."""
        layer = self.begin(OWN)
        over = [job for job in layer.all(queue) if job.state is ACTIVE and job.expires_on < self.model.now]
        over = [job for job in over if job.id not in self.locked()]
        found = self.sessions.query(
            "SELECT id FROM trioboss.live_job WHERE queue = %s AND readiness = 'active' AND expires_on < %s",
            [queue, self.model.now],
        )
        assert {id for (id,) in found} - self.locked() == {job.id for job in over}
        self.model.fail(layer, over, "expired")
        if over and not self.would_wait(layer, OWN):
            failed = [(lease_of(job), Failure(outcome="expired")) for job in over]
            operation = self.sessions.store.settling.fail_leases
            states = self.sessions.run(OWN, lambda own: operation(queue, failed))
            assert {id: layer.get(id).state for id in states} == states
            assert set(states) == {job.id for job in over}
            self.finish(layer, OWN)

    # -- by id

    def change(self, name: str, session: int, queue: str, ids: Sequence[UUID]) -> list[UUID]:
        """Cancel, resume, retry or delete; return the ids of the jobs that were changed."""
        layer = self.begin(session)
        expected: list[UUID] = getattr(self.model, name)(layer, queue, ids)
        if not ids or self.would_wait(layer, session):
            return []
        operation = getattr(self.sessions.store.changing, name)
        try:
            settled = self.sessions.run(session, lambda own: operation(queue, ids, own=own))
        except JobNotFound:
            assert expected == []
        else:
            assert set(settled.ids) == set(expected)
            assert (settled.requested, settled.affected) == (len(ids), len(expected))
        self.finish(layer, session)
        return expected

    # -- what holds after every step

    @invariant()
    def the_database_is_as_the_model(self) -> None:
        jobs, throttle, history, violations = self.sessions.query_all(JOBS, THROTTLE, HISTORY, VIOLATIONS)
        rows = [Row(*job) for job in jobs]
        assert rows == [as_row(job, self.model) for job in self.model.committed.all()]
        assert {("throttle", *slot): id for *slot, id in throttle} == self.model.committed.throttle
        assert sorted(history) == sorted(self.model.committed.history)
        assert violations == []
        self.witness.check_attempts(rows)
        self.agreed = True

    def teardown(self) -> None:
        if self.agreed:
            self.drain()

    def drain(self) -> None:
        """Nothing is stuck: once everybody has committed, each job comes to its end.

        First everything fails at once, as often as it may; then time passes, and the rest is completed. Jobs that
        block their key are retried; where their slot is taken, they are deleted.
        """
        for session in list(self.drafts):
            self.end_transaction(session, commits=True)
        self.work_off("fail", timedelta(0))
        self.work_off("complete", timedelta(hours=20))  # longer than any backoff
        for queue in self.model.queues:
            while failed := [job.id for job in self.model.committed.all(queue) if job.owns_key]:
                if not self.change("retry", OWN, queue, failed):
                    self.change("delete", OWN, queue, failed)
                self.work_off("complete", timedelta(0))
        assert [job for job in self.model.committed.all() if job.is_live] == []

    def work_off(self, operation: str, pause: timedelta) -> None:
        worked = True
        while worked:
            self.pass_time(pause)
            worked = sum(self.work_off_queue(queue, operation) for queue in self.model.queues.values()) > 0
        self.the_database_is_as_the_model()

    def work_off_queue(self, queue: ModelQueue, operation: str) -> bool:
        self.claim(OWN, queue, 1000)
        held = [job for job in self.held if job.queue == queue.name]
        if held:
            self.settle(operation, OWN, held, by_id=False)
        return bool(held)
