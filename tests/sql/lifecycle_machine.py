"""How a step of the lifecycle machine is made: first in the model, then in the database, then compared.

A statement that the database would let wait for somebody's transaction is left out; lifecycle_waiting.py has those.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import attrs
from hypothesis.stateful import RuleBasedStateMachine, invariant
from lifecycle_checks import HISTORY, SLOTS, VIOLATIONS, Witness, in_bounds, is_close
from lifecycle_desk import JOBS, OWN, Desk, Row
from lifecycle_model import Fence, Model
from lifecycle_values import ACTIVE, RETRY, Layer, ModelJob, ModelQueue, Order

from trioboss.errors import JobNotFound, LeaseLost
from trioboss.model.job import Job, Lease, NewJob
from trioboss.model.policy import Policy
from trioboss.model.settle_and_claim import ClaimRequest, Failure
from trioboss.postgres.operation import Operation

START = datetime(2030, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
KEYS = ("a", "b")


class LifecycleMachine(RuleBasedStateMachine):
    """The steps. The rules that choose among them are in test_lifecycle_machine.py."""

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self.desk = desk
        self.desk.clear()
        self.model = Model({}, START, {})
        self.drafts: dict[int, Layer] = {}
        """What the callers have done and not committed."""
        self.witness = Witness()
        self.names: list[str] = []
        self.claimed: list[Job] = []
        self.agreed = False

    def create_queue(self, queue: ModelQueue) -> None:
        options = attrs.asdict(queue)
        del options["name"]
        self.desk.say(OWN, lambda own: self.desk.store.queues.create(queue.name, options))
        self.model.queues[queue.name] = queue
        if queue.is_fifo:
            # A dead letter without a key gets the name of its queue for a key.
            turns = "SELECT key, trioboss.turn(%s, key) FROM unnest(%s::text[]) key"
            for key, lock in self.desk.query(
                turns, [queue.name, [*KEYS, *(f"q{number}" for number in range(len(Policy)))]]
            ):
                self.model.turns[queue.name, key] = lock
        self.names.append(queue.name)

    # -- the frame of a step

    def begin(self, hand: int) -> Layer:
        """A new statement, a moment later."""
        self.agreed = False
        self.pass_time(MICROSECOND)
        if hand == OWN:
            return Layer(self.model.committed)
        return Layer(self.drafts.get(hand) or Layer(self.model.committed))

    def pass_time(self, span: timedelta) -> None:
        self.model.now += span
        self.desk.now = self.model.now

    def would_wait(self, layer: Layer, hand: int) -> bool:
        return any(layer.must_wait_for(draft) for other, draft in self.drafts.items() if other != hand)

    def finish(self, layer: Layer, hand: int) -> None:
        """The statement was run: in our own session it is committed."""
        self.adopt(layer, hand)
        assert layer.below is not None
        if hand != OWN:
            self.drafts[hand] = layer.below
        layer.pour()
        if hand == OWN:
            self.witness.saw_commit(layer.jobs)

    def adopt(self, layer: Layer, hand: int) -> None:
        """Take over what only the database could know: the ids of dead letters, the luck of a backoff."""
        for job in [job for job in layer.jobs.values() if job]:
            if job.source_id is not None and job.attempt == 0 and job.id not in self.witness.sent:
                letters = "SELECT id FROM trioboss.job WHERE source_id = %s AND id <> ALL (%s)"
                ((id,),) = self.desk.query(letters, [job.source_id, list(self.witness.sent)], hand)
                layer.rename(job, id)
                self.witness.saw_sent(id, irregular=True)
            elif (
                job.state is RETRY
                and job.retry_backoff
                and job.start_after == self.model.now
                and job.deferred
            ):
                starts = "SELECT start_after FROM trioboss.job WHERE id = %s"
                ((start,),) = self.desk.query(starts, [job.id], hand)
                longest = max(job.retry_delay, 1) * 2 ** min(16, job.failures)
                assert in_bounds(start, self.model.now, longest / 2, longest)
                layer.put(attrs.evolve(job, start_after=start))

    def locked(self, hand: int | None = None) -> set[UUID]:
        """The jobs that others have changed and not committed."""
        return {id for other, draft in self.drafts.items() if other != hand for id in draft.jobs}

    def end_transaction(self, hand: int, *, commits: bool) -> None:
        draft = self.drafts.pop(hand)
        if commits:
            self.desk.hands[hand].commit()
            draft.pour()
            self.witness.saw_commit(draft.jobs)
        else:
            self.desk.hands[hand].rollback()

    # -- sending

    def send(self, hand: int, order: Order) -> None:
        layer = self.begin(hand)
        expected = order.id if self.model.send(layer, order) else None
        if self.would_wait(layer, hand):
            return
        assert self.run_send(hand, order) == expected
        self.saw_sent(layer, [order])
        self.finish(layer, hand)

    def send_again(self, hand: int, order: Order) -> None:
        """The same id twice is one job, whatever became of the first."""
        layer = self.begin(hand)
        if layer.get(order.id) is None:
            return  # deleted in this very transaction
        layer.targets.add(order.id)
        self.model.send(layer, order)
        layer.jobs, layer.slots = {}, {}  # nothing comes of it, but it waits like any other
        if not self.would_wait(layer, hand):
            assert self.run_send(hand, order) == order.id
            self.finish(layer, hand)

    def run_send(self, hand: int, order: Order) -> UUID | None:
        return self.desk.say(hand, lambda own: self.send_verb(order, own=own))

    def send_verb(self, order: Order, *, own: bool) -> Operation[UUID | None]:
        verb = self.desk.store.sending.send
        return verb(order.queue, as_new_job(order), own=own, unique_until=order.unique_until)

    def insert(self, hand: int, queue: str, orders: list[Order]) -> None:
        layer = self.begin(hand)
        expected = self.model.insert(layer, orders)
        if self.would_wait(layer, hand):
            return
        assert self.desk.insert(hand, queue, [as_new_job(order) for order in orders]) == expected
        self.saw_sent(layer, orders)
        self.finish(layer, hand)

    def saw_sent(self, layer: Layer, orders: Sequence[Order]) -> None:
        for order in orders:
            if job := layer.jobs.get(order.id):
                self.witness.saw_sent(order.id, irregular=job.deferred)

    # -- claiming

    def claim(self, hand: int, queue: ModelQueue, limit: int, *, by_priority: bool = True) -> list[Job]:
        """Claim, and get exactly the jobs that the model says can run, in its order."""
        layer = self.begin(hand)
        again: set[str | None] = set()
        if queue.policy.is_keyed:
            placing = Layer(self.model.committed)
            again = self.model.place(placing, queue.name, self.locked())
            placing.pour()
        # Jobs become due in our own session, which does not see what a caller has not committed.
        unseen = {job.id for job in layer.below.jobs.values() if job and job.deferred} if hand else set()
        expected = self.model.claim(layer, queue.name, limit, by_priority, self.locked(hand) | unseen)
        wanted, verb = ClaimRequest(limit, by_priority=by_priority), self.desk.store.claiming.claim
        before = self.desk.rows() if queue.is_fifo else []
        claim = self.desk.say(hand, lambda own: verb(queue.name, wanted, own=own))

        assert [job.id for job in claim.jobs] == expected
        for job in claim.jobs:
            assert_same(job, layer.get(job.id))
            if queue.is_fifo and any(row.id == job.id for row in before):
                self.witness.check_turn(job.id, before, commit_order=queue.commit_order)
        self.finish(layer, hand)
        self.claimed += claim.jobs
        if hand == OWN:
            self.check_next_due(claim.next_due, queue.name, again)
        return claim.jobs

    def check_next_due(self, next_due: float | None, queue: str, again: set[str | None]) -> None:
        if again:  # whose turn it is could not be decided: look again soon
            assert next_due is not None
            assert next_due <= 0.05
        elif not any(job.id in self.locked() for job in self.model.committed.all(queue)):
            assert is_close(next_due, self.model.next_due(self.model.committed, queue))

    # -- settling

    def settle(self, name: str, hand: int, jobs: Sequence[Job], *, by_id: bool) -> None:
        """Settle leases, some of them stale: those are named in the error, and change nothing."""
        queue = jobs[0].queue
        jobs = list({job.id: job for job in jobs if job.queue == queue}.values())
        layer = self.begin(hand)
        current = self.model.current(layer, [fence(job, by_id=by_id) for job in jobs])
        getattr(self.model, name)(layer, current)
        if self.would_wait(layer, hand):
            return
        held = {job.id for job in current}
        lost = {job.id for job in jobs} - held
        targets = [job.id if by_id else job for job in jobs]
        try:
            settled = self.desk.say(hand, lambda own: self.verbs(name)(queue, targets, own=own))
        except (LeaseLost, JobNotFound) as error:
            assert set(error.ids) == lost  # noqa: PT017
            assert isinstance(error, JobNotFound) == by_id  # noqa: PT017
            assert lost
            assert not (by_id and held)
        else:
            assert set(settled.ids) == held
            assert by_id or not lost
        self.finish(layer, hand)

    def verbs(self, name: str) -> Callable[..., Any]:
        verbs = self.desk.store.settling
        return {
            "complete": lambda queue, targets, own: verbs.complete(queue, targets, {"done": 1}, own=own),
            "fail": lambda queue, targets, own: verbs.fail(queue, targets, "an error", own=own),
            "touch": verbs.touch,
        }[name]

    @property
    def held(self) -> list[Job]:
        """Leases that are in force, as far as is committed."""
        return [job for job in self.claimed if self._active_since(job) == job.started_on]

    @property
    def outlived(self) -> list[Job]:
        """Leases of jobs that are active again, in other hands."""
        return [job for job in self.claimed if self._active_since(job) not in (None, job.started_on)]

    def _active_since(self, job: Job) -> datetime | None:
        """Since when the job is active, if it is."""
        now = self.model.committed.get(job.id)
        return now.started_on if now is not None and now.state is ACTIVE else None

    def release(self, queue: str, leases: Sequence[Lease]) -> None:
        layer = self.begin(OWN)
        current = self.model.current(layer, [(held.id, held.attempt, held.started_on) for held in leases])
        self.model.fail(layer, self.model.release(layer, current))
        if not self.would_wait(layer, OWN):
            self.desk.say(OWN, lambda own: self.desk.store.settling.release_leases(queue, leases))
            self.finish(layer, OWN)

    def expire(self, queue: str) -> None:
        layer = self.begin(OWN)
        over = [job for job in layer.all(queue) if job.state is ACTIVE and job.expires_on < self.model.now]
        over = [job for job in over if job.id not in self.locked()]
        self.model.fail(layer, over, "expired")
        if over and not self.would_wait(layer, OWN):
            failed = [(lease_of(job), Failure(outcome="expired")) for job in over]
            states = self.desk.say(OWN, lambda own: self.desk.store.settling.fail_leases(queue, failed))
            assert {id: layer.get(id).state for id in states} == states
            assert set(states) == {job.id for job in over}
            self.finish(layer, OWN)

    # -- by id

    def change(self, name: str, hand: int, queue: str, ids: Sequence[UUID]) -> list[UUID]:
        """Cancel, resume, retry or delete; return the ids of those to which it happened."""
        layer = self.begin(hand)
        expected: list[UUID] = getattr(self.model, name)(layer, queue, ids)
        if not ids or self.would_wait(layer, hand):
            return []
        verb = getattr(self.desk.store.settling, name)
        try:
            settled = self.desk.say(hand, lambda own: verb(queue, ids, own=own))
        except JobNotFound:
            assert expected == []
        else:
            assert set(settled.ids) == set(expected)
            assert (settled.requested, settled.affected) == (len(ids), len(expected))
        self.finish(layer, hand)
        return expected

    # -- what holds after every step

    @invariant()
    def the_database_is_as_the_model_says(self) -> None:
        jobs, slots, history, violations = self.desk.look(JOBS, SLOTS, HISTORY, VIOLATIONS)
        rows = [Row(*job[:-1]) for job in jobs]
        assert rows == [as_row(job) for job in self.model.committed.all()]
        assert {("slot", *slot): id for *slot, id in slots} == self.model.committed.slots
        assert sorted(history) == sorted(self.model.committed.history)
        assert violations == []
        self.witness.check_attempts(rows)
        self.agreed = True

    def teardown(self) -> None:
        if self.agreed:
            self.drain()

    def drain(self) -> None:
        """Nothing is stuck: once everybody has committed, each job comes to its end.

        First everything fails at once, as often as it may; then time passes, and what is left is completed.
        What blocks its key is tried again by hand; where its place is taken, it is deleted.
        """
        for hand in list(self.drafts):
            self.end_transaction(hand, commits=True)
        self.work_off("fail", timedelta(0))
        self.work_off("complete", timedelta(hours=20))  # longer than any backoff
        for queue in self.model.queues:
            while failed := [job.id for job in self.model.committed.all(queue) if job.holds_key]:
                if not self.change("retry", OWN, queue, failed):
                    self.change("delete", OWN, queue, failed)
                self.work_off("complete", timedelta(0))
        assert [job for job in self.model.committed.all() if job.is_live] == []

    def work_off(self, verb: str, pause: timedelta) -> None:
        worked = True
        while worked:
            self.pass_time(pause)
            worked = sum(self.work_off_queue(queue, verb) for queue in self.model.queues.values()) > 0
        self.the_database_is_as_the_model_says()

    def work_off_queue(self, queue: ModelQueue, verb: str) -> bool:
        self.claim(OWN, queue, 1000)
        held = [job for job in self.held if job.queue == queue.name]
        if held:
            self.settle(verb, OWN, held, by_id=False)
        return bool(held)


# -- the same thing in two languages


def as_new_job(order: Order) -> NewJob:
    return NewJob(
        None,
        id=order.id,
        priority=order.priority,
        start_after=order.delay,
        singleton_key=order.key,
        singleton_seconds=order.slot_seconds,
        singleton_next_slot=order.next_slot,
    )


def as_row(job: ModelJob) -> Row:
    same = {field.name: getattr(job, field.name) for field in attrs.fields(Row) if field.name != "hot"}
    turn = job.policy.is_keyed and job.is_queued and job.ready
    return Row(**{**same, "ready": turn, "hot": job.is_hot})


NOT_IN_JOB = ("policy", "ready", "hot", "key")


def assert_same(job: Job, expected: ModelJob) -> None:
    row = attrs.asdict(as_row(expected), filter=lambda field, _: field.name not in NOT_IN_JOB)
    assert {name: getattr(job, name) for name in row} == row
    assert job.singleton_key == expected.key


def fence(job: Job, *, by_id: bool) -> Fence:
    return (job.id, None, None) if by_id else (job.id, job.attempt, job.started_on)


def lease_of(job: ModelJob) -> Lease:
    assert job.started_on is not None
    return Lease(job.id, job.attempt, job.started_on)
