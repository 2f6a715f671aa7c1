"""The database moves jobs as the tables TRANSITIONS and READINESS in model/states.py say, under every policy."""

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import attrs
import pytest
from lifecycle_sessions import OWN, Sessions
from psycopg.types.json import Jsonb
from test_statements import NAMES

from trioboss.errors import JobNotFound
from trioboss.model.job import Job, Lease, NewJob
from trioboss.model.policy import Policy
from trioboss.model.settle_and_claim import ClaimRequest, Failure, Settlements
from trioboss.model.states import (
    READINESS,
    TRANSITIONS,
    Action,
    JobState,
    Readiness,
    ReadinessEvent,
    state_of,
)
from trioboss.postgres.operation import Batch, Operation
from trioboss.store.context import uuid_array

NEVER = datetime(2000, 1, 1, tzinfo=UTC)
KEYED = [policy for policy in Policy if policy.is_keyed]


@attrs.frozen
class Subject:
    """One job, alone in its queue, and everything that can be done to it."""

    sessions: Sessions
    queue: str
    id: UUID

    @classmethod
    def send(cls, sessions: Sessions, queue: str, policy: Policy, **options: Any) -> "Subject":
        settings = {"policy": policy, "retry_limit": 9}
        sessions.run(OWN, lambda own: sessions.store.queues.create(queue, settings))
        job = NewJob(singleton_key="key", **options)
        id = sessions.run(OWN, lambda own: sessions.store.sending.send(queue, job, own=own))
        return cls(sessions, queue, id)

    def run(self, operation: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return self.sessions.run(OWN, lambda own: operation(self.queue, *args, **options))

    def execute(self, *names: str, **values: object) -> None:
        """Run statements of one transaction, by their names."""

        def operation(own: bool) -> Operation[None]:
            context = self.sessions.store.context
            yield Batch(tuple(context.bind(name, queue=self.queue, **values) for name in names))

        self.sessions.run(OWN, operation)

    def read(self) -> Job | None:
        return self.run(self.sessions.store.reading.get_job, self.id)

    def row(self) -> tuple[Any, ...] | None:
        """The row in the live table, whole."""
        rows = self.sessions.query("SELECT * FROM trioboss.live_job WHERE id = %s", [self.id])
        return rows[0] if rows else None

    def readiness(self) -> Readiness | None:
        """None if the job is not in the live table."""
        rows = self.sessions.query("SELECT readiness::text FROM trioboss.live_job WHERE id = %s", [self.id])
        return Readiness(rows[0][0]) if rows else None

    @property
    def lease(self) -> Lease:
        """The lease of the last attempt, in force or not."""
        job = self.read()
        return Lease(self.id, job.attempt, job.started_on or NEVER)

    def fail(self, **how: Any) -> None:
        self.run(self.sessions.store.settling.fail_leases, [(self.lease, Failure(**how))])

    def claim(self) -> None:
        """A claim that promotes nothing first."""
        operation = self.sessions.store.settle_and_claim.settle_and_claim
        self.run(operation, Settlements(), ClaimRequest(10, promote_due=False))

    def quarantine(self) -> None:
        """Give it options that the database rejects, as plain SQL may have written them before the check was there."""
        change = "ALTER DOMAIN trioboss.job_options"
        self.sessions.own.execute(f"{change} DROP CONSTRAINT job_options_check")
        poison = "UPDATE trioboss.live_job SET options = %s WHERE id = %s AND readiness < 'ended'"
        self.sessions.own.execute(poison, [Jsonb({"expire_in": "soon"}), self.id])
        check = "CHECK (VALUE IS NULL OR trioboss.check_job_options(VALUE))"
        self.sessions.own.execute(f"{change} ADD CONSTRAINT job_options_check {check} NOT VALID")
        self.run(self.sessions.store.settling.quarantine_unsound)

    def do(self, action: Action) -> None:
        settling, changing = self.sessions.store.settling, self.sessions.store.changing
        match action:
            case Action.CLAIM:
                self.run(self.sessions.store.claiming.claim, ClaimRequest(10))
            case Action.COMPLETE:
                self.run(self.sessions.store.manual.complete, self.id, None, own=True)
            case Action.COMPLETE_QUEUED:
                self.execute("complete_queued", ids=uuid_array([self.id]))
            case Action.FAIL:
                self.run(self.sessions.store.manual.fail, self.id, "an error", own=True)
            case Action.EXHAUST:
                self.fail(dead=True)
            case Action.RELEASE:
                self.run(settling.release_leases, [self.lease])
            case Action.QUARANTINE:
                self.quarantine()
            case Action.CANCEL | Action.RESUME | Action.RETRY:
                self.run(getattr(changing, action), self.id, own=True)

    def attempt(self, action: Action) -> None:
        """Do it, if it is possible."""
        with contextlib.suppress(JobNotFound):
            self.do(action)


# -- states and actions

# The ways in which a job that was just sent gets into a state: with and without an attempt, where that matters.
WAYS = {
    JobState.CREATED: [[]],
    JobState.RETRY: [[Action.CLAIM, Action.FAIL]],
    JobState.ACTIVE: [[Action.CLAIM]],
    JobState.COMPLETED: [[Action.CLAIM, Action.COMPLETE]],
    JobState.CANCELLED: [[Action.CANCEL], [Action.CLAIM, Action.CANCEL]],
    JobState.FAILED: [[Action.CLAIM, Action.EXHAUST], [Action.QUARANTINE]],
}


def bring_to(sessions: Sessions, policy: Policy, state: JobState, name: object, way: list[Action]) -> Subject:
    subject = Subject.send(sessions, f"{policy}-{state}-{name}", policy)
    for action in way:
        subject.do(action)
    assert subject.read().state is state
    return subject


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("policy", Policy)
def test_every_action_moves_a_job_as_the_table_says(sessions, policy, state):
    moved = {}
    for action in Action:
        for number, way in enumerate(WAYS[state]):
            subject = bring_to(sessions, policy, state, f"{action}-{number}", way)
            subject.attempt(action)
            after = subject.read().state
            if after is not state:
                moved.setdefault(action, set()).add(after)

    assert moved == {action: set(after) for action, after in TRANSITIONS[state].items()}


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("policy", Policy)
def test_an_action_that_does_not_apply_changes_nothing(sessions, policy, state):
    for number, way in enumerate(WAYS[state]):
        subject = bring_to(sessions, policy, state, number, way)
        before = subject.read(), subject.row()
        for action in set(Action) - set(TRANSITIONS[state]):
            subject.attempt(action)

        assert (subject.read(), subject.row()) == before


@pytest.mark.parametrize("way", [[Action.CLAIM], [Action.CLAIM, Action.FAIL]])
@pytest.mark.parametrize("policy", Policy)
def test_a_resumed_job_that_was_attempted_before_waits_for_a_retry(sessions, policy, way):
    subject = Subject.send(sessions, "q", policy)
    for action in (*way, Action.CANCEL, Action.RESUME):
        subject.do(action)

    assert subject.read().state is JobState.RETRY


@pytest.mark.parametrize("policy", Policy)
def test_a_job_can_be_deleted_in_every_state(sessions, policy):
    for state in JobState:
        subject = bring_to(sessions, policy, state, 0, WAYS[state][0])
        subject.run(subject.sessions.store.changing.delete, subject.id, own=True)

        assert subject.read() is None


# -- readiness and events

NOT_BUILT = {ReadinessEvent.UNBLOCK}
"""Events of features that do not exist yet: there is no statement."""


NEW_TIME_ONLY = Readiness.BLOCKED, ReadinessEvent.UPDATE_JOBS
"""A blocked job that gets another time stays blocked."""


def ways_to(readiness: Readiness, policy: Policy) -> list[Callable[[Subject], None]]:
    """The ways in which a job of a queue gets into a readiness; none if it never does."""

    def move(subject: Subject) -> None:
        update = "UPDATE trioboss.live_job SET readiness = %s WHERE id = %s"
        subject.sessions.own.execute(update, [readiness, subject.id])

    def admit(subject: Subject) -> None:
        subject.execute("lock_admission", "admit", limit=1, checks=10, by_priority=True)

    def end(subject: Subject) -> None:
        subject.claim()
        subject.fail(dead=True)

    def retry_later(subject: Subject) -> None:
        subject.claim()
        subject.fail(delay=3600)

    def admit_again(subject: Subject) -> None:
        subject.claim()
        subject.run(subject.sessions.store.settling.release_leases, [subject.lease])
        admit(subject)  # one of strict FIFO is ready already

    keyed, fifo = policy.is_keyed, policy is Policy.KEY_STRICT_FIFO
    return {
        Readiness.DEFERRED: [defer, retry_later],
        Readiness.BLOCKED: [move],
        Readiness.WAITING: [leave] if keyed else [],
        Readiness.READY: [admit, admit_again] if keyed else [leave],
        Readiness.ACTIVE: [Subject.claim],
        Readiness.ENDED: [end] if fifo else [],
    }[readiness]


def leave(subject: Subject) -> None:
    """Leave the job as it was sent."""


def defer(subject: Subject) -> None:
    """It was sent as a deferred one."""


def make_due(subject: Subject) -> None:
    update = "UPDATE trioboss.live_job SET start_after = now() - interval '1 s' WHERE id = %s"
    subject.sessions.own.execute(update, [subject.id])


def run_event(subject: Subject, event: ReadinessEvent, delay: float) -> None:
    settling, changing = subject.sessions.store.settling, subject.sessions.store.changing
    match event:
        case ReadinessEvent.PROMOTE_DUE:
            subject.execute("promote_due", limit=10)
        case ReadinessEvent.ADMIT:
            subject.execute("lock_admission", "admit", limit=10, checks=10, by_priority=True)
        case ReadinessEvent.CLAIM:
            subject.claim()
        case ReadinessEvent.CLAIM_EARLY:
            subject.execute("claim_early", limit=10)
        case ReadinessEvent.RETRY_FAILED:
            subject.fail(delay=delay)
        case ReadinessEvent.FAIL:
            subject.fail(dead=True)
        case ReadinessEvent.QUARANTINE:
            subject.quarantine()
        case ReadinessEvent.RELEASE:
            subject.run(settling.release_leases, [subject.lease])
        case ReadinessEvent.COMPLETE:
            subject.run(subject.sessions.store.manual.complete, subject.id, None, own=True)
        case ReadinessEvent.COMPLETE_QUEUED:
            subject.execute("complete_queued", ids=uuid_array([subject.id]))
        case ReadinessEvent.RESCHEDULE:
            subject.execute("reschedule", ids=uuid_array([subject.id]), run_now=True)
        case ReadinessEvent.UPDATE_JOBS:
            # Another time than that of its readiness: now, or later.
            delay = 0 if subject.readiness() is Readiness.DEFERRED else 3600
            subject.execute("update_jobs", ids=uuid_array([subject.id]), delay=delay)
        case ReadinessEvent.RETRY | ReadinessEvent.CANCEL:
            subject.run(getattr(changing, event), subject.id, own=True)
        case ReadinessEvent.DELETE:
            subject.run(changing.delete, subject.id, own=True)


def outcomes(
    sessions: Sessions, policy: Policy, readiness: Readiness, event: ReadinessEvent
) -> set[Readiness | None]:
    """The readiness after an event, in all variants of it; it is the same if nothing happened."""
    found = set()
    for way_number, way in enumerate(ways_to(readiness, policy)):
        for delay in (0, 3600) if event is ReadinessEvent.RETRY_FAILED else (0,):
            name = f"{policy}-{readiness}-{event}-{way_number}-{delay}"
            start = {"start_after": 3600} if way is defer else {}
            subject = Subject.send(sessions, name, policy, **start)
            way(subject)
            assert subject.readiness() is readiness, name
            make_due(subject)
            before = subject.row()
            with contextlib.suppress(JobNotFound):
                run_event(subject, event, delay)
            found.add(subject.readiness())
            if event not in READINESS[readiness] and (readiness, event) != NEW_TIME_ONLY:
                assert subject.row() == before, name
    return found


@pytest.mark.parametrize("event", sorted(set(ReadinessEvent) - NOT_BUILT))
@pytest.mark.parametrize("readiness", Readiness)
def test_every_event_moves_a_live_job_as_the_table_says(sessions, readiness, event):
    found = {policy: outcomes(sessions, policy, readiness, event) for policy in Policy}
    allowed = set(READINESS[readiness].get(event, (readiness,)))

    assert {policy: moved - allowed for policy, moved in found.items() if moved - allowed} == {}
    assert set().union(*found.values()) == allowed  # and the table lists nothing that never happens


@pytest.mark.parametrize("policy", KEYED)
def test_a_job_of_an_owned_key_is_neither_admitted_nor_claimed(sessions, policy):
    owner = Subject.send(sessions, "q", policy)
    owner.claim()
    second = sessions.run(
        OWN, lambda own: sessions.store.sending.send("q", NewJob(singleton_key="key"), own=own)
    )
    subject = Subject(sessions, "q", second)
    for event in (ReadinessEvent.ADMIT, ReadinessEvent.CLAIM):
        run_event(subject, event, 0)

    assert subject.readiness() is Readiness.WAITING


# How an attempted job of strict FIFO, which owns its key, gets to where the event finds it.
OWNERS: dict[ReadinessEvent, Callable[[Subject], None]] = {
    **dict.fromkeys(
        (ReadinessEvent.PROMOTE_DUE, ReadinessEvent.RESCHEDULE, ReadinessEvent.UPDATE_JOBS),
        lambda subject: subject.fail(delay=3600),
    ),
    **dict.fromkeys((ReadinessEvent.RETRY_FAILED, ReadinessEvent.RELEASE), leave),
    ReadinessEvent.RETRY: lambda subject: subject.fail(dead=True),
}


@pytest.mark.parametrize("event", OWNERS)
def test_a_job_that_owns_its_key_becomes_ready_without_being_admitted(sessions, event):
    subject = Subject.send(sessions, f"owner-{event}", Policy.KEY_STRICT_FIFO)
    subject.claim()
    OWNERS[event](subject)
    make_due(subject)
    run_event(subject, event, 0)

    assert subject.readiness() is Readiness.READY
    assert sessions.query("SELECT owner FROM trioboss.live_job WHERE id = %s", [subject.id]) == [("key:key",)]


def test_events_are_named_after_their_statements():
    assert {event.value for event in set(ReadinessEvent) - NOT_BUILT} <= set(NAMES)
    assert {event.value for event in NOT_BUILT}.isdisjoint(NAMES)


@pytest.mark.parametrize("readiness", Readiness)
@pytest.mark.parametrize("attempt", [0, 3])
def test_the_view_derives_the_state_as_the_model_does(sessions, readiness, attempt):
    ended = readiness is Readiness.ENDED
    subject = Subject.send(sessions, "q", Policy.KEY_STRICT_FIFO if ended else Policy.STANDARD)
    if ended:
        subject.claim()
    sessions.own.execute(
        "UPDATE trioboss.live_job SET attempt = %s, readiness = %s", [attempt, readiness.value]
    )
    ((stored, attempts),) = sessions.query("SELECT readiness::text, attempt FROM trioboss.live_job")

    assert subject.read().state is state_of(Readiness(stored), attempts)
