"""Two schemas in one database, with queues of the same names and keys: whatever happens in one, the other has no part
in it. The random lives of test_lifecycle_machine.py, two at a time, each with sessions of its own.
"""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from lifecycle_desk import Desk
from test_lifecycle_machine import KINDS, Lifecycle, delays, hands, keys, picks, queue_lists

import trioboss
from trioboss.testing import temporary_database

SCHEMAS = ("trioboss", "Neighbour")
houses = st.integers(0, len(SCHEMAS) - 1)


class Neighbours(RuleBasedStateMachine):
    """Each rule is a step in one of the houses; what must hold is asked of both."""

    def __init__(self, desks: list[Desk]) -> None:
        super().__init__()
        self.houses = [Lifecycle(desk) for desk in desks]

    @initialize(queues=queue_lists(), first=st.lists(st.tuples(picks, keys, delays), max_size=4))
    def create_queues(self, queues, first):
        for house in self.houses:
            house.create_queues(queues, first)

    @rule(house=houses, hand=hands, pick=picks, key=keys, kind=st.sampled_from(tuple(KINDS)), delay=delays)
    def send_a_job(self, house, hand, pick, key, kind, delay):
        self.houses[house].send_a_job(hand, pick, key, kind, 0, delay)

    @rule(house=houses, hand=hands, pick=picks, then=st.sampled_from((None, "complete", "fail", "release")))
    def work(self, house, hand, pick, then):
        self.houses[house].work(hand, pick, 2, True, then)

    @rule(house=houses, hand=hands, verb=st.sampled_from(("complete", "fail")), pick=picks)
    def settle(self, house, hand, verb, pick):
        if self.houses[house].held:
            self.houses[house].settle_leases_in_force(hand, verb, [pick])

    @rule(house=houses, verb=st.sampled_from(("cancel", "resume", "retry", "delete")), hand=hands, pick=picks)
    def change_jobs(self, house, verb, hand, pick):
        self.houses[house].change_jobs(verb, hand, pick, [pick])

    @rule(house=houses, pick=picks)
    def expire_leases(self, house, pick):
        self.houses[house].expire_leases(pick, 31)

    @rule(house=houses, pick=picks, commits=st.booleans())
    def commit_or_roll_back(self, house, pick, commits):
        if self.houses[house].drafts:
            self.houses[house].commit_or_roll_back(pick, commits)

    @rule(house=houses, pick=picks, key=keys, commits=st.booleans())
    def send_a_job_that_has_to_wait(self, house, pick, key, commits):
        if self.houses[house].drafts:
            self.houses[house].send_a_job_that_has_to_wait(pick, key, "plain", commits)

    @invariant()
    def both_are_as_their_models_say(self):
        for house in self.houses:
            house.the_database_is_as_the_model_says()

    def teardown(self):
        for house in self.houses:
            house.teardown()


@pytest.fixture
def desks(server_dsn, template):
    with temporary_database(server_dsn, template) as dsn:
        with trioboss.SyncBoss(dsn, schema=SCHEMAS[1]):
            pass
        desks = [Desk.open(dsn, schema) for schema in SCHEMAS]
        yield desks
        for desk in desks:
            desk.close()


def test_two_schemas_live_side_by_side(desks):
    chosen = settings(
        max_examples=max(10, settings().max_examples // 5),
        stateful_step_count=30,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    run_state_machine_as_test(lambda: Neighbours(desks), settings=chosen)
