"""Random lives of random jobs, step by step, on a real server and in the model beside it.

Three sessions: our own, and two callers whose transactions stay open over many steps. A fourth one waits for callers,
and goes on when they have ended. Time is passed to SQL and only grows. Leases are never thrown away, so stale ones
are used as a matter of course.
`pytest --hypothesis-profile=deep tests/sql/test_lifecycle_machine.py` runs it longer.
"""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID, uuid4

import attrs
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, multiple, precondition, rule, run_state_machine_as_test
from lifecycle_frame import KEYS
from lifecycle_sessions import CALLERS, OWN
from lifecycle_values import ACTIVE, CANCELLED, CREATED, FAILED, RETRY, ModelQueue, Overrides, SendRequest
from lifecycle_waiting import WaitingMachine

from trioboss.model.policy import Policy
from trioboss.model.states import JobState, Readiness

session_numbers = st.sampled_from((OWN, OWN, *CALLERS))
picks = st.integers(0, 99)
keys = st.sampled_from((None, *KEYS))
delays = st.sampled_from((0, 0, 0, 5, 60))
overrides = st.sampled_from((Overrides(), Overrides(), Overrides(), Overrides(retry_limit=4, retry_delay=5)))

KEYED = [policy for policy in Policy if policy.is_keyed]

# The states that an operation is for; it is tried on other states, too.
FITTING = {
    "cancel": (CREATED, RETRY, ACTIVE),
    "resume": (CANCELLED,),
    "retry": (FAILED,),
    "delete": tuple(JobState),
}

KINDS = {
    "plain": {},
    "once": {"unique_until": "ended"},
    "singleton": {"unique_until": "started"},
    "throttled": {"throttle_seconds": 60},
    "debounced": {"throttle_seconds": 60, "next_slot": True},
}

# To which readiness a plain UPDATE moves a queued job.
MOVES = (Readiness.WAITING, Readiness.READY, Readiness.DEFERRED)


@st.composite
def queue_lists(draw) -> list[ModelQueue]:
    """One or two queues, or one of every policy; some with a dead letter queue, which is of any policy, too."""
    dead = draw(st.sampled_from([None, *Policy]))
    few = st.lists(st.sampled_from((*Policy, *KEYED, *[Policy.EXCLUSIVE] * 3)), min_size=1, max_size=2)
    policies = list(Policy) if draw(st.integers(0, 4)) == 4 else draw(few)
    queues = [
        ModelQueue(
            f"q{number}",
            policy,
            commit_order=draw(st.booleans()),
            retry_limit=draw(st.integers(0, 3)),
            retry_delay=draw(st.sampled_from((0, 0, 10))),
            retry_backoff=draw(st.integers(0, 9)) == 9,
            keep_completed=draw(st.integers(0, 9)) < 9,
            dead_letter=draw(st.sampled_from(("dead", None))) if dead else None,
        )
        for number, policy in enumerate(policies)
    ]
    return [ModelQueue("dead", dead), *queues] if dead else queues


class Lifecycle(WaitingMachine):
    leases = Bundle("leases")

    @initialize(queues=queue_lists(), first=st.lists(st.tuples(picks, keys, delays), max_size=8))
    def create_queues(self, queues, first):
        for queue in queues:
            self.create_queue(queue)
        for pick, key, delay in first:
            self.send(OWN, self.request(self.pick_queue(pick), key, delay=delay))

    def pick_queue(self, pick: int, states: Sequence[JobState] = ()) -> ModelQueue:
        """A queue: mostly one with jobs in the states given."""
        jobs = self.model.committed.all()
        fitting = sorted({job.queue for job in jobs if job.state in states})
        names = fitting if fitting and pick % 4 else self.names
        return self.model.queues[names[pick % len(names)]]

    def request(self, queue: ModelQueue, key: str | None, **options) -> SendRequest:
        return SendRequest(uuid4(), queue.name, key or (KEYS[0] if queue.is_fifo else None), **options)

    def pick_jobs(self, queue: str, numbers: Sequence[int], states: Sequence[JobState]) -> list[UUID]:
        """Some jobs: mostly of those in the states given, and of any state else."""
        jobs = self.model.committed.all(queue)
        fitting = [job for job in jobs if job.state in states]
        jobs = fitting if fitting and numbers[0] % 4 else jobs
        return list({jobs[number % len(jobs)].id: None for number in numbers}) if jobs else []

    def has_any(self, *states: JobState) -> bool:
        return any(job.state in states for job in self.model.committed.all())

    @rule(
        session=session_numbers,
        pick=picks,
        key=keys,
        kind=st.sampled_from(("plain", "plain", *KINDS)),
        priority=st.sampled_from((0, 0, 5, -1)),
        delay=delays,
        overrides=overrides,
    )
    def send_a_job(self, session, pick, key, kind, priority, delay, overrides):
        options = {"priority": priority, "delay": delay, "overrides": overrides, **KINDS[kind]}
        self.send(session, self.request(self.pick_queue(pick), key, **options))

    @precondition(lambda self: self.has_any(RETRY, ACTIVE))
    @rule(
        session=session_numbers,
        pick=picks,
        kind=st.sampled_from(("plain", "once", "singleton")),
        plain=st.booleans(),
    )
    def send_a_job_beside_one_that_has_started(self, session, pick, kind, plain):
        """The same queue and key: the policy of the queue, or the way both were sent, may refuse it."""
        started = [job for job in self.model.committed.all() if job.state in (RETRY, ACTIVE)]
        # Mostly one that only its own policy, or its own way of sending, protects.
        alone = [
            job
            for job in started
            if job.unique_until or self.model.queues[job.queue].policy is Policy.EXCLUSIVE
        ]
        started = alone if alone and pick % 4 else started
        beside = started[pick % len(started)]
        options = {"unique_until": beside.unique_until, **KINDS[kind]}
        request = SendRequest(uuid4(), beside.queue, beside.key, **options)
        (self.insert_row if plain else self.send)(session, request)

    @rule(
        pick=picks,
        key=keys,
        kind=st.sampled_from(("plain", "once")),
        back=st.sampled_from(((), ("cancel", "resume"))),
        plain=st.booleans(),
    )
    def send_two_of_a_key(self, pick, key, kind, back, plain):
        """The second one while the first is active, or queued again after an attempt."""
        queue = self.pick_queue(pick)
        first, second = (self.request(queue, key, **KINDS[kind]) for _ in range(2))
        self.send(OWN, first)
        self.claim(OWN, queue, 1000, by_priority=True)
        for name in back:
            self.change(name, OWN, queue.name, [first.id])
        (self.insert_row if plain else self.send)(OWN, second)

    @rule(
        session=session_numbers,
        pick=picks,
        keys=st.lists(keys, min_size=1, max_size=4),
        delay=st.sampled_from((0, 5)),
    )
    def insert_jobs(self, session, pick, keys, delay):
        queue = self.pick_queue(pick)
        requests = [self.request(queue, key, delay=delay if at == 1 else 0) for at, key in enumerate(keys)]
        self.insert(session, queue.name, requests)

    @precondition(lambda self: self.has_any(*JobState))
    @rule(session=session_numbers, pick=picks, number=picks)
    def send_the_same_id_again(self, session, pick, number):
        queue = self.pick_queue(pick)
        for id in self.pick_jobs(queue.name, [number], tuple(JobState)):
            key = self.model.committed.get(id).key
            self.send_again(session, attrs.evolve(self.request(queue, key), id=id))

    @rule(
        target=leases,
        session=session_numbers,
        pick=picks,
        limit=st.sampled_from((1, 1, 2, 1000)),
        by_priority=st.sampled_from((True, True, True, False)),
        then=st.sampled_from((None, None, "complete", "fail", "fail", "release")),
    )
    def work(self, session, pick, limit, by_priority, then):
        """Claim jobs, and keep them or end their attempts at once."""
        queue = self.pick_queue(pick, (CREATED, RETRY))
        jobs = self.claim(session, queue, limit, by_priority=by_priority)
        if jobs and then == "release" and session == OWN:
            self.release(queue.name, [job.lease for job in jobs])
        elif jobs and then:
            self.settle("fail" if then == "release" else then, session, jobs, by_id=False)
        return multiple(*jobs)

    @rule(
        session=session_numbers,
        name=st.sampled_from(("complete", "fail", "touch")),
        job=leases,
        other=leases,
        by_id=st.booleans(),
    )
    def settle_leases(self, session, name, job, other, by_id):
        self.settle(name, session, [job, other], by_id=by_id)

    @rule(job=leases, other=leases)
    def release_leases(self, job, other):
        leases = {each.id: each.lease for each in (job, other) if each.queue == job.queue}
        self.release(job.queue, list(leases.values()))

    @precondition(lambda self: self.held)
    @rule(
        session=session_numbers,
        name=st.sampled_from(("complete", "fail", "fail")),
        picks=st.lists(picks, min_size=1),
    )
    def settle_leases_in_force(self, session, name, picks):
        self.settle(name, session, [self.held[pick % len(self.held)] for pick in picks], by_id=False)

    @precondition(lambda self: self.outlived)
    @rule(session=session_numbers, name=st.sampled_from(("complete", "fail", "touch", "release")), pick=picks)
    def settle_a_lease_that_was_outlived(self, session, name, pick):
        """The job runs again, and the worker of an earlier attempt comes back to end it."""
        late = self.outlived[pick % len(self.outlived)]
        if name == "release":
            self.release(late.queue, [late.lease])
        else:
            self.settle(name, session, [late], by_id=False)

    @precondition(lambda self: self.has_any(ACTIVE))
    @rule(pick=picks, seconds=st.sampled_from((31, 31, 1)))
    def expire_leases(self, pick, seconds):
        self.pass_time(timedelta(seconds=seconds))
        self.expire(self.pick_queue(pick, (ACTIVE,)).name)

    @rule(
        pick=picks,
        limit=st.integers(0, 3),
        delay=st.sampled_from((0, 10)),
        expire_in=st.sampled_from((30, 5)),
    )
    def change_the_options_of_a_queue(self, pick, limit, delay, expire_in):
        queue = self.pick_queue(pick)
        self.update_queue(queue, retry_limit=limit, retry_delay=delay, expire_in=expire_in)

    @precondition(lambda self: self.has_any(*JobState))
    @rule(
        name=st.sampled_from(tuple(FITTING)),
        session=session_numbers,
        pick=picks,
        numbers=st.lists(picks, min_size=1, max_size=3),
    )
    def change_jobs(self, name, session, pick, numbers):
        queue = self.pick_queue(pick, FITTING[name]).name
        changed = self.change(name, session, queue, self.pick_jobs(queue, numbers, FITTING[name]))
        if name == "resume":
            self.witness.irregular |= set(changed)

    # -- plain SQL

    @rule(
        session=session_numbers,
        pick=picks,
        key=keys,
        kind=st.sampled_from(("plain", "plain", "once", "singleton")),
    )
    def insert_a_row(self, session, pick, key, kind):
        self.insert_row(session, self.request(self.pick_queue(pick), key, **KINDS[kind]))

    @precondition(lambda self: self.has_any(CREATED, RETRY))
    @rule(session=session_numbers, pick=picks, number=picks, readiness=st.sampled_from(MOVES))
    def move_a_row(self, session, pick, number, readiness):
        queue = self.pick_queue(pick, (CREATED, RETRY))
        if readiness is Readiness.WAITING and not queue.policy.is_keyed:
            readiness = Readiness.READY  # there is no backlog to wait in
        for id in self.pick_jobs(queue.name, [number], (CREATED, RETRY)):
            self.move_row(session, id, readiness)

    @precondition(lambda self: self.has_any(CREATED, RETRY, ACTIVE))
    @rule(session=session_numbers, pick=picks, numbers=st.lists(picks, min_size=1, max_size=2))
    def delete_some_rows(self, session, pick, numbers):
        states = (CREATED, RETRY, ACTIVE)
        queue = self.pick_queue(pick, states).name
        self.delete_rows(session, queue, self.pick_jobs(queue, numbers, states))

    # -- statements that wait for a caller

    @precondition(lambda self: self.drafts)
    @rule(pick=picks, key=keys, kind=st.sampled_from(tuple(KINDS)), commits=st.booleans())
    def send_a_job_that_has_to_wait(self, pick, key, kind, commits):
        self.send_and_wait(self.request(self.pick_queue(pick), key, **KINDS[kind]), commits=commits)

    @precondition(lambda self: self.drafts and self.claimed)
    @rule(name=st.sampled_from(("complete", "fail", "touch")), pick=picks, commits=st.booleans())
    def settle_a_lease_that_somebody_is_changing(self, name, pick, commits):
        claimed = [job for job in self.claimed if job.id in self.locked()]
        if claimed:
            self.settle_and_wait(name, claimed[pick % len(claimed)], commits=commits)

    @precondition(lambda self: self.drafts)
    @rule(name=st.sampled_from(tuple(FITTING)), pick=picks, commits=st.booleans())
    def change_a_job_that_somebody_is_changing(self, name, pick, commits):
        jobs = [job for job in self.model.committed.all() if job.id in self.locked()]
        if jobs:
            job = jobs[pick % len(jobs)]
            self.change_and_wait(name, job.queue, job.id, commits=commits)

    @rule(seconds=st.sampled_from((1, 5, 10, 31, 60, 1000)))
    def let_time_pass(self, seconds):
        self.pass_time(timedelta(seconds=seconds))

    @precondition(lambda self: self.drafts)
    @rule(pick=picks, commits=st.booleans())
    def commit_or_roll_back(self, pick, commits):
        self.end_transaction(sorted(self.drafts)[pick % len(self.drafts)], commits=commits)


def test_jobs_live_as_the_model_says(sessions):
    # Lives are long, and some of them are spent waiting.
    chosen = settings(
        max_examples=settings().max_examples * 6 // 5,
        stateful_step_count=50,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    run_state_machine_as_test(lambda: Lifecycle(sessions), settings=chosen)
