"""Two statements on one job, in the order that hurts: the second waits for the first, and then sees what it did."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from lifecycle_desk import CALLERS, OWN, Desk

from trioboss.errors import JobNotFound, LeaseLost
from trioboss.model.job import NewJob
from trioboss.model.settle_and_claim import ClaimRequest
from trioboss.model.states import JobState

CALLER, OTHER = CALLERS


class Race:
    def __init__(self, desk: Desk, **options) -> None:
        self.desk = desk
        self.say("queues", "create", {"retry_limit": 2, "dead_letter": None, **options})

    def say(self, part: str, verb: str, *args, hand: int = OWN, **options):
        method = getattr(getattr(self.desk.store, part), verb)
        return self.desk.say(hand, lambda own: method("q", *args, **options))

    def send(self, **options):
        unique = options.pop("unique_until", None)
        return self.say("sending", "send", NewJob(**options), own=True, unique_until=unique)

    def claim(self):
        return self.say("claiming", "claim", ClaimRequest(10)).jobs

    def states(self) -> list[tuple[str, int, int]]:
        return self.desk.query("SELECT state::text, attempt, retry_count FROM trioboss.all_jobs ORDER BY seq")

    @contextmanager
    def while_waiting(self, *args, **options) -> Iterator[None]:
        """Run a verb of ours in a thread, and the block once the verb waits for somebody's lock.

        What the verb raises is raised at the end of the block.
        """
        outcome: list[object] = []

        def run() -> None:
            try:
                outcome.append(self.say(*args, **options))
            except Exception as error:
                outcome.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        self._until_blocked(thread)
        yield
        thread.join()
        self.outcome = outcome[0]
        if isinstance(self.outcome, Exception):
            raise self.outcome

    def _until_blocked(self, thread: threading.Thread) -> None:
        waits = "SELECT wait_event_type FROM pg_stat_activity WHERE pid = %s"
        pid = self.desk.hands[OWN].info.backend_pid
        with psycopg.connect(self.desk.hands[OWN].info.dsn, autocommit=True) as looking:
            while thread.is_alive():
                if looking.execute(waits, [pid]).fetchone() == ("Lock",):
                    return
        raise AssertionError("it did not wait")


@pytest.fixture
def race(desk):
    return Race(desk)


def test_a_heartbeat_on_its_way_does_not_spoil_a_failure(desk, race):
    race.send()
    (job,) = race.claim()
    race.say("settling", "touch", job, hand=CALLER, own=False)
    with race.while_waiting("settling", "fail", job, "an error", own=True):
        desk.hands[CALLER].commit()

    assert race.states() == [("retry", 1, 1)]


def test_a_heartbeat_on_its_way_does_not_double_a_job_that_fails_for_good(desk):
    race = Race(desk, retry_limit=0)
    race.send()
    (job,) = race.claim()
    race.say("settling", "touch", job, hand=CALLER, own=False)
    with race.while_waiting("settling", "fail", job, "an error", own=True):
        desk.hands[CALLER].commit()

    assert race.states() == [("failed", 1, 0)]


def test_a_heartbeat_on_its_way_does_not_spoil_a_release(desk, race):
    race.send()
    (job,) = race.claim()
    race.say("settling", "touch", job, hand=CALLER, own=False)
    with race.while_waiting("settling", "release_leases", [job.lease]):
        desk.hands[CALLER].commit()

    assert race.states() == [("retry", 1, 0)]
    assert desk.query("SELECT outcome FROM trioboss.attempt") == [("released",)]


def test_a_heartbeat_on_its_way_does_not_use_up_the_extensions(desk, race):
    race.send()
    (job,) = race.claim()
    race.say("settling", "touch", job, hand=CALLER, own=False)
    with race.while_waiting("claiming", "extend", job.lease, 60):
        desk.hands[CALLER].commit()

    assert race.outcome == 960


@pytest.mark.parametrize("late", ["complete", "fail"])
@pytest.mark.parametrize("early", ["complete", "fail", "cancel", "delete"])
def test_of_two_ends_the_first_to_commit_counts(desk, race, early, late):
    race.send()
    (job,) = race.claim()
    output = [None] if early in ("complete", "fail") else []
    race.say("settling", early, job, *output, hand=CALLER, own=False)
    with pytest.raises(LeaseLost), race.while_waiting("settling", late, job, None, own=True):
        desk.hands[CALLER].commit()

    after = {
        "complete": [("completed", 1, 0)],
        "fail": [("retry", 1, 1)],
        "cancel": [("cancelled", 1, 0)],
        "delete": [],
    }
    assert race.states() == after[early]


@pytest.mark.parametrize("late", ["complete", "fail"])
def test_an_end_that_is_rolled_back_never_was(desk, race, late):
    race.send()
    (job,) = race.claim()
    race.say("settling", "cancel", job, hand=CALLER, own=False)
    with race.while_waiting("settling", late, job, None, own=True):
        desk.hands[CALLER].rollback()

    assert race.states() == [{"complete": ("completed", 1, 0), "fail": ("retry", 1, 1)}[late]]


def test_a_job_that_is_claimed_again_meanwhile_is_not_ended_by_its_old_owner(desk, race):
    race.send()
    (old,) = race.claim()
    race.say("settling", "fail", old, None, hand=CALLER, own=False)
    (new,) = race.say("claiming", "claim", ClaimRequest(1), hand=CALLER, own=False).jobs
    with pytest.raises(LeaseLost), race.while_waiting("settling", "complete", old, None, own=True):
        desk.hands[CALLER].commit()

    assert (new.attempt, race.states()) == (2, [("active", 2, 1)])


@pytest.mark.parametrize("verb", ["complete", "fail", "touch"])
def test_the_lease_of_a_claim_that_was_rolled_back_is_none(desk, race, verb):
    race.send()
    (never,) = race.say("claiming", "claim", ClaimRequest(1), hand=CALLER, own=False).jobs
    desk.hands[CALLER].rollback()
    (job,) = race.claim()
    assert (job.id, job.attempt) == (never.id, never.attempt)  # the same number, and yet another lease

    with pytest.raises(LeaseLost):
        race.say("settling", verb, never, *([None] if verb != "touch" else []), own=True)
    assert race.states() == [("active", 1, 0)]


@pytest.mark.parametrize("verb", ["resume", "retry"])
def test_of_two_revivals_one_happens(desk, race, verb):
    id = race.send()
    if verb == "resume":
        race.say("settling", "cancel", id, own=True)
    else:
        (job,) = race.claim()
        desk.hands[OWN].execute("UPDATE trioboss.job SET retry_limit = 0")
        race.say("settling", "fail", job, None, own=True)
    race.say("settling", verb, id, hand=CALLER, own=False)
    with pytest.raises(JobNotFound), race.while_waiting("settling", verb, id, own=True):
        desk.hands[CALLER].commit()

    assert [state for state, *_ in race.states()] == [{"resume": "created", "retry": "retry"}[verb]]


# -- places that are taken while somebody is on the way there


def test_a_stately_retry_that_comes_second_fails_for_good(desk):
    race = Race(desk, policy="stately", retry_limit=1)
    first = race.send(singleton_key="k")
    desk.hands[OWN].execute("UPDATE trioboss.job SET retry_limit = 0")
    race.say("settling", "fail", race.claim(), None, own=True)
    race.send(singleton_key="k")
    (second,) = race.claim()
    race.say("settling", "retry", first, hand=CALLER, own=False)  # takes the one place for a retry
    with race.while_waiting("settling", "fail", second, None, own=True):
        desk.hands[CALLER].commit()

    assert [state for state, *_ in race.states()] == ["retry", "failed"]


def test_a_release_whose_place_is_taken_meanwhile_fails(desk):
    race = Race(desk, retry_limit=5)
    race.send(unique_until="started")
    (job,) = race.claim()
    other = NewJob()
    race.say("sending", "send", other, hand=CALLER, own=False, unique_until="started")
    with race.while_waiting("settling", "release_leases", [job.lease]):
        desk.hands[CALLER].commit()

    assert [state for state, *_ in race.states()] == ["failed", "created"]


def test_a_send_waits_for_a_send_of_the_same_key_and_comes_second(desk):
    race = Race(desk, policy="key_strict_fifo")
    first = race.say("sending", "send", NewJob(singleton_key="k"), hand=CALLER, own=False)
    with race.while_waiting("sending", "send", NewJob(singleton_key="k"), own=True):
        desk.hands[CALLER].commit()

    assert [job.id for job in race.claim()] == [first]
    rows = desk.query("SELECT id FROM trioboss.job ORDER BY seq")
    assert rows == [(first,), (race.outcome,)]


def test_a_claimed_job_is_not_deleted_with_those_that_wait(desk, race):
    race.send()
    race.say("claiming", "claim", ClaimRequest(1), hand=CALLER, own=False)
    with race.while_waiting("settling", "delete_many", ["delete_queued_jobs"], own=True):
        desk.hands[CALLER].commit()

    assert race.states() == [("active", 1, 0)]


def test_the_states_have_the_same_order_here_and_there(desk):
    ((labels,),) = desk.query("SELECT enum_range(NULL::trioboss.job_state)::text[]")

    assert labels == list(JobState)
