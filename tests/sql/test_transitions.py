"""The database moves jobs between states exactly as TRANSITIONS in model/states.py says, under every policy."""

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import attrs
import pytest
from lifecycle_desk import OWN, Desk

from trioboss.errors import JobNotFound
from trioboss.model.job import Job, Lease, NewJob
from trioboss.model.policy import Policy
from trioboss.model.settle_and_claim import ClaimRequest, Failure
from trioboss.model.states import TRANSITIONS, JobState, Verb

NEVER = datetime(2000, 1, 1, tzinfo=UTC)


@attrs.frozen
class Subject:
    """One job, alone in its queue, and everything that can be done to it."""

    desk: Desk
    queue: str
    id: UUID

    def say(self, verb: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return self.desk.say(OWN, lambda own: verb(self.queue, *args, **options))

    def read(self) -> Job:
        return self.say(self.desk.store.reading.get_job, self.id)

    @property
    def lease(self) -> Lease:
        """The lease of the last attempt, in force or not."""
        job = self.read()
        return Lease(self.id, job.attempt, job.started_on or NEVER)

    def do(self, verb: Verb) -> None:
        settling, claiming = self.desk.store.settling, self.desk.store.claiming
        match verb:
            case Verb.CLAIM:
                self.say(claiming.claim, ClaimRequest(10))
            case Verb.COMPLETE:
                self.say(settling.complete, self.id, None, own=True)
            case Verb.FAIL:
                self.say(settling.fail, self.id, "an error", own=True)
            case Verb.EXHAUST:
                self.say(settling.fail_leases, [(self.lease, Failure(dead=True))])
            case Verb.RELEASE:
                self.say(settling.release_leases, [self.lease])
            case Verb.CANCEL | Verb.RESUME | Verb.RETRY:
                self.say(getattr(settling, verb), self.id, own=True)

    def try_to(self, verb: Verb) -> None:
        """Do it, if it is possible."""
        with contextlib.suppress(JobNotFound):
            self.do(verb)


# How a job that was just sent gets into a state.
WAYS = {
    JobState.CREATED: [],
    JobState.RETRY: [Verb.CLAIM, Verb.FAIL],
    JobState.ACTIVE: [Verb.CLAIM],
    JobState.COMPLETED: [Verb.CLAIM, Verb.COMPLETE],
    JobState.CANCELLED: [Verb.CANCEL],
    JobState.FAILED: [Verb.CLAIM, Verb.EXHAUST],
}


@pytest.fixture
def send(desk):
    def send(policy: Policy, state: JobState, number: int) -> Subject:
        queue = f"{policy}-{state}-{number}"
        desk.say(OWN, lambda own: desk.store.queues.create(queue, {"policy": policy, "retry_limit": 9}))
        job = NewJob(singleton_key="key")
        id = desk.say(OWN, lambda own: desk.store.sending.send(queue, job, own=own))
        subject = Subject(desk, queue, id)
        for verb in WAYS[state]:
            subject.do(verb)
        assert subject.read().state is state
        return subject

    return send


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("policy", Policy)
def test_every_verb_moves_a_job_as_the_table_says(send, policy, state):
    moved = {}
    for number, verb in enumerate(Verb):
        subject = send(policy, state, number)
        subject.try_to(verb)
        after = subject.read().state
        if after is not state:
            moved[verb] = after

    assert moved == TRANSITIONS[state]


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("policy", Policy)
def test_a_verb_that_does_not_apply_changes_nothing(send, policy, state):
    subject = send(policy, state, 0)
    before = subject.read()
    for verb in set(Verb) - set(TRANSITIONS[state]):
        subject.try_to(verb)

    assert subject.read() == before


@pytest.mark.parametrize("policy", Policy)
def test_a_job_can_be_deleted_in_every_state(send, policy):
    for state in JobState:
        subject = send(policy, state, 0)
        subject.say(subject.desk.store.settling.delete, subject.id, own=True)

        assert subject.read() is None
