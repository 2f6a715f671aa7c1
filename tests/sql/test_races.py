"""Two statements on one job, the second of which waits for the first, and then sees what that one did."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from lifecycle_sessions import CALLERS
from sql_helpers import QueueUnderTest, wait_until_blocked

from trioboss.errors import JobNotFound, LeaseLost
from trioboss.model.job import NewJob
from trioboss.model.settle_and_claim import ClaimRequest
from trioboss.model.states import Readiness
from trioboss.postgres.operation import Batch, Operation

CALLER = CALLERS[0]


class Race(QueueUnderTest):
    """A queue, and operations of ours that wait for a caller."""

    outcome: object

    @contextmanager
    def while_waiting(self, *args, **options) -> Iterator[None]:
        """Run an operation of ours in a thread, and the block once the operation waits for a lock.

        Its error is raised at the end of the block.
        """
        outcome: list[object] = []

        def run() -> None:
            try:
                outcome.append(self.run(*args, **options))
            except Exception as error:
                outcome.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        with psycopg.connect(self.sessions.own.info.dsn, autocommit=True) as observer:
            wait_until_blocked(observer, self.sessions.own.info.backend_pid)
        yield
        thread.join()
        self.outcome = outcome[0]
        if isinstance(self.outcome, Exception):
            raise self.outcome

    def rows(self) -> list[tuple[str, int, int]]:
        return self.sessions.query("SELECT state, attempt, retry_count FROM trioboss.all_jobs ORDER BY seq")


@pytest.fixture
def race(sessions):
    return Race(sessions, retry_limit=2)


@pytest.fixture
def caller(sessions):
    return sessions.connections[CALLER]


def test_a_heartbeat_under_way_does_not_spoil_a_failure(race, caller):
    race.send()
    (job,) = race.claim()
    race.touch(job, CALLER)
    with race.while_waiting("manual", "fail", job, "an error", own=True):
        caller.commit()

    assert race.rows() == [("retry", 1, 1)]


def test_a_heartbeat_under_way_does_not_double_a_job_that_fails_for_good(sessions, caller):
    race = Race(sessions, retry_limit=0)
    race.send()
    (job,) = race.claim()
    race.touch(job, CALLER)
    with race.while_waiting("manual", "fail", job, "an error", own=True):
        caller.commit()

    assert race.rows() == [("failed", 1, 0)]


def test_a_heartbeat_under_way_does_not_spoil_a_release(race, caller):
    race.send()
    (job,) = race.claim()
    race.touch(job, CALLER)
    with race.while_waiting("settling", "release_leases", [job.lease]):
        caller.commit()

    assert race.rows() == [("retry", 1, 0)]
    assert race.sessions.query("SELECT outcome FROM trioboss.attempt") == [("released",)]


def test_a_heartbeat_under_way_does_not_use_up_the_extensions(race, caller):
    race.send()
    (job,) = race.claim()
    race.touch(job, CALLER)
    with race.while_waiting("leases", "extend", job.lease, 60):
        caller.commit()

    assert race.outcome == 960


@pytest.mark.parametrize("late", ["complete", "fail"])
@pytest.mark.parametrize("early", ["complete", "fail", "cancel", "delete"])
def test_of_two_ends_the_first_to_commit_counts(race, caller, early, late):
    race.send()
    (job,) = race.claim()
    if early in ("cancel", "delete"):
        race.change(early, job, CALLER)
    else:
        getattr(race, early)(job, CALLER)
    with pytest.raises(LeaseLost), race.while_waiting("manual", late, job, None, own=True):
        caller.commit()

    after = {
        "complete": [("completed", 1, 0)],
        "fail": [("retry", 1, 1)],
        "cancel": [("cancelled", 1, 0)],
        "delete": [],
    }
    assert race.rows() == after[early]


@pytest.mark.parametrize("late", ["complete", "fail"])
def test_an_end_that_is_rolled_back_never_was(race, caller, late):
    race.send()
    (job,) = race.claim()
    race.change("cancel", job, CALLER)
    with race.while_waiting("manual", late, job, None, own=True):
        caller.rollback()

    assert race.rows() == [{"complete": ("completed", 1, 0), "fail": ("retry", 1, 1)}[late]]


def test_a_job_that_is_claimed_again_meanwhile_is_not_ended_by_its_earlier_worker(race, caller):
    race.send()
    (old,) = race.claim()
    race.fail(old, CALLER)
    (new,) = race.claim(1, CALLER)
    with pytest.raises(LeaseLost), race.while_waiting("manual", "complete", old, None, own=True):
        caller.commit()

    assert (new.attempt, race.rows()) == (2, [("active", 2, 1)])


@pytest.mark.parametrize("end", ["complete", "fail", "touch"])
def test_the_lease_of_a_claim_that_was_rolled_back_is_none(race, caller, end):
    race.send()
    (never,) = race.claim(1, CALLER)
    caller.rollback()
    (job,) = race.claim()
    assert (job.id, job.attempt) == (never.id, never.attempt)  # the same number, and yet another lease

    with pytest.raises(LeaseLost):
        getattr(race, end)(never)
    assert race.rows() == [("active", 1, 0)]


@pytest.mark.parametrize("change", ["resume", "retry"])
def test_of_two_revivals_one_happens(race, caller, change):
    id = race.send(retry_limit=0)
    if change == "resume":
        race.change("cancel", id)
    else:
        race.fail(race.claim())
    race.change(change, id, CALLER)
    with pytest.raises(JobNotFound), race.while_waiting("changing", change, id, own=True):
        caller.commit()

    assert race.states() == [{"resume": "created", "retry": "retry"}[change]]


# -- slots that are taken while a job is on the way there


def test_a_stately_retry_that_comes_second_fails_for_good(sessions, caller):
    race = Race(sessions, "stately", retry_limit=1)
    first = race.send("k", retry_limit=0)
    race.fail(race.claim())
    race.send("k")
    (second,) = race.claim()
    race.change("retry", first, CALLER)  # takes the one slot for a retry
    with race.while_waiting("manual", "fail", second, None, own=True):
        caller.commit()

    assert race.states() == ["retry", "failed"]


def test_a_release_whose_slot_is_taken_meanwhile_is_queued_without_it(race, caller):
    race.send(unique_until="started")
    (job,) = race.claim()
    race.send(session=CALLER, unique_until="started")
    with race.while_waiting("settling", "release_leases", [job.lease]):
        caller.commit()

    assert race.sessions.query("SELECT state, unique_until FROM trioboss.job ORDER BY seq") == [
        ("retry", None),
        ("created", "started"),
    ]


def test_a_stately_release_whose_slot_is_taken_meanwhile_is_queued_without_it(sessions, caller):
    race = Race(sessions, "stately")
    first = race.send("k", retry_limit=0)
    race.fail(race.claim())
    race.send("k")
    (second,) = race.claim()
    race.change("retry", first, CALLER)
    with race.while_waiting("settling", "release_leases", [second.lease]):
        caller.commit()

    assert race.states() == ["retry", "retry"]


@pytest.mark.parametrize(
    ("policy", "unique_until"),
    [("exclusive", None), ("short", None), ("standard", "ended"), ("standard", "started")],
)
@pytest.mark.parametrize("commits", [True, False])
def test_a_send_waits_for_another_one_of_its_slot(sessions, caller, policy, unique_until, commits):
    race = Race(sessions, policy)
    first = race.send("k", CALLER, unique_until=unique_until)
    options = {"own": True, "unique_until": unique_until}
    with race.while_waiting("sending", "send", NewJob(singleton_key="k"), **options):
        caller.commit() if commits else caller.rollback()

    assert (race.outcome is None) == commits
    assert race.sessions.query("SELECT id FROM trioboss.job") == [(first if commits else race.outcome,)]


def test_a_send_waits_for_a_send_of_the_same_key_and_comes_second(sessions, caller):
    race = Race(sessions, "key_strict_fifo")
    first = race.send("k", CALLER)
    with race.while_waiting("sending", "send", NewJob(singleton_key="k"), own=True):
        caller.commit()

    assert [job.id for job in race.claim()] == [first]
    assert race.sessions.query("SELECT id FROM trioboss.job ORDER BY seq") == [(first,), (race.outcome,)]


def test_a_plain_insert_waits_for_a_send_of_the_same_key_and_comes_second(sessions, caller):
    race = Race(sessions, "key_strict_fifo")
    caller.execute("INSERT INTO trioboss.job (name, singleton_key) VALUES ('q', 'k')")
    with race.while_waiting("sending", "send", NewJob(singleton_key="k"), own=True):
        caller.commit()

    (first,) = race.claim()
    assert first.id != race.outcome


def test_a_claimed_job_is_not_deleted_with_those_that_are_queued(race, caller):
    race.send()
    race.claim(1, CALLER)
    with race.while_waiting("changing", "delete_many", ["delete_queued_jobs"], own=True):
        caller.commit()

    assert race.rows() == [("active", 1, 0)]


def test_two_dispatchers_admit_one_after_the_other(sessions, caller):
    """The admission lock: the second reads the backlogs when the first has committed."""
    race = Race(sessions, "singleton")
    race.send("k", priority=1)
    lock = sessions.store.context.bind("lock_admission", queue="q")

    def take_lock(own: bool) -> Operation[None]:
        yield Batch((lock,))

    sessions.run(CALLER, take_lock)
    with race.while_waiting("claiming", "claim", ClaimRequest(1), own=True):
        caller.commit()

    assert len(race.outcome.jobs) == 1


def test_the_readiness_has_the_same_order_in_the_database_and_in_the_model(sessions):
    ((labels,),) = sessions.query("SELECT enum_range(NULL::trioboss.readiness)::text[]")

    assert labels == list(Readiness)


def test_an_operation_that_does_not_wait_is_noticed(race, caller):
    with pytest.raises(AssertionError, match="does not wait"):
        wait_until_blocked(caller, race.sessions.own.info.backend_pid, 0.2)
