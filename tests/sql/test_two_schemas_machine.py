"""Two schemas in one database, with queues of the same names and keys: a change in one never shows in the other.

The random lives of test_lifecycle_machine.py, two at a time, each with sessions of its own.
"""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from lifecycle_sessions import Sessions
from lifecycle_values import Overrides
from test_lifecycle_machine import KINDS, Lifecycle, delays, keys, picks, queue_lists, session_numbers

import trioboss
from trioboss.testing import temporary_database

SCHEMAS = ("trioboss", "Neighbour")
schemas = st.integers(0, len(SCHEMAS) - 1)


class Neighbours(RuleBasedStateMachine):
    """Each rule is a step in one of the schemas; the invariants of both are checked."""

    def __init__(self, both: list[Sessions]) -> None:
        super().__init__()
        self.lives = [Lifecycle(sessions) for sessions in both]

    @initialize(queues=queue_lists(), first=st.lists(st.tuples(picks, keys, delays), max_size=4))
    def create_queues(self, queues, first):
        for life in self.lives:
            life.create_queues(queues, first)

    @rule(
        schema=schemas,
        session=session_numbers,
        pick=picks,
        key=keys,
        kind=st.sampled_from(tuple(KINDS)),
        delay=delays,
    )
    def send_a_job(self, schema, session, pick, key, kind, delay):
        self.lives[schema].send_a_job(session, pick, key, kind, 0, delay, Overrides())

    @rule(
        schema=schemas,
        session=session_numbers,
        pick=picks,
        then=st.sampled_from((None, "complete", "fail", "release")),
    )
    def work(self, schema, session, pick, then):
        self.lives[schema].work(session, pick, 2, True, then)

    @rule(schema=schemas, session=session_numbers, name=st.sampled_from(("complete", "fail")), pick=picks)
    def settle(self, schema, session, name, pick):
        if self.lives[schema].held:
            self.lives[schema].settle_leases_in_force(session, name, [pick])

    @rule(
        schema=schemas,
        name=st.sampled_from(("cancel", "resume", "retry", "delete")),
        session=session_numbers,
        pick=picks,
    )
    def change_jobs(self, schema, name, session, pick):
        self.lives[schema].change_jobs(name, session, pick, [pick])

    @rule(schema=schemas, pick=picks)
    def expire_leases(self, schema, pick):
        self.lives[schema].expire_leases(pick, 31)

    @rule(schema=schemas, pick=picks, commits=st.booleans())
    def commit_or_roll_back(self, schema, pick, commits):
        if self.lives[schema].drafts:
            self.lives[schema].commit_or_roll_back(pick, commits)

    @rule(schema=schemas, pick=picks, key=keys, commits=st.booleans())
    def send_a_job_that_has_to_wait(self, schema, pick, key, commits):
        if self.lives[schema].drafts:
            self.lives[schema].send_a_job_that_has_to_wait(pick, key, "plain", commits)

    @invariant()
    def both_are_as_their_models(self):
        for life in self.lives:
            life.the_database_is_as_the_model()

    def teardown(self):
        for life in self.lives:
            life.teardown()


@pytest.fixture
def both(server_dsn, template):
    with temporary_database(server_dsn, template) as dsn:
        with trioboss.SyncBoss(dsn, schema=SCHEMAS[1]):
            pass
        both = [Sessions.open(dsn, schema) for schema in SCHEMAS]
        yield both
        for sessions in both:
            sessions.close()


def test_two_schemas_live_side_by_side(both):
    chosen = settings(
        max_examples=max(10, settings().max_examples // 5),
        stateful_step_count=30,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    run_state_machine_as_test(lambda: Neighbours(both), settings=chosen)
