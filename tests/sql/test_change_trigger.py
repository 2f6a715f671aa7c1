"""The trigger follow_readiness is for plain SQL: our statements set all the columns themselves."""

import contextlib
from collections.abc import Callable, Iterator

import pytest
from lifecycle_sessions import OWN, Sessions
from test_transitions import KEYED, NOT_BUILT, Subject, defer, make_due, run_event, ways_to

from trioboss.errors import JobNotFound
from trioboss.model.job import NewJob
from trioboss.model.policy import Policy
from trioboss.model.states import READINESS, Action, Readiness, ReadinessEvent

LEFT_ALONE = {
    (Readiness.READY, ReadinessEvent.UPDATE_JOBS),
    (Readiness.ACTIVE, ReadinessEvent.RETRY_FAILED),
    (Readiness.DEFERRED, ReadinessEvent.QUARANTINE),
    (Readiness.READY, ReadinessEvent.QUARANTINE),
}
"""Where a statement fires the trigger, for jobs of strict FIFO that own their key. (reschedule.sql does, too, when it
changes the priority of a deferred one.)
"""


@contextlib.contextmanager
def trigger_that_only_notes_that_it_fired(sessions: Sessions) -> Iterator[Callable[[], bool]]:
    ((definition,),) = sessions.query("SELECT pg_get_functiondef('trioboss.follow_change'::regproc)")
    note = "CREATE OR REPLACE FUNCTION trioboss.follow_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    note += "PERFORM set_config('test.fired', TG_NAME, false); RETURN NEW; END $$"
    sessions.own.execute(note)
    sessions.own.execute("SELECT set_config('test.fired', '', false)")
    try:
        yield lambda: sessions.query("SELECT current_setting('test.fired')") == [("follow_readiness",)]
    finally:
        sessions.own.execute(definition)


def run_and_read(subject: Subject, event: ReadinessEvent, before: int) -> tuple[object, ...]:
    """The columns that the trigger could set, and how many checks the event has added."""
    with contextlib.suppress(JobNotFound):
        run_event(subject, event, 3600)
    columns = "readiness, attempt, backlog, slot, owner, worker, expires_on IS NULL, heartbeat, heartbeat_on"
    read = f"SELECT {columns} FROM trioboss.live_job WHERE id = %s"
    return count_checks(subject) - before, *subject.sessions.query(read, [subject.id])


def count_checks(subject: Subject) -> int:
    count = "SELECT count(*) FROM trioboss.backlog_check WHERE queue = %s"
    return int(subject.sessions.query(count, [subject.queue])[0][0])


@pytest.mark.parametrize("policy", KEYED)
def test_no_statement_leaves_anything_to_the_trigger_for_plain_sql(sessions, policy):
    fired = set()
    for readiness, event in ((each, event) for each in READINESS for event in {*READINESS[each]} - NOT_BUILT):
        for number, way in enumerate(ways_to(readiness, policy)):
            pair = []
            for kind in ("real", "noted"):
                start = {"start_after": 3600} if way is defer else {}
                name = f"{readiness}-{event}-{number}-{kind}"
                pair.append(subject := Subject.send(sessions, name, policy, **start))
                way(subject)
                make_due(subject)
            real = run_and_read(pair[0], event, count_checks(pair[0]))
            before = count_checks(pair[1])
            with trigger_that_only_notes_that_it_fired(sessions) as has_fired:
                assert run_and_read(pair[1], event, before) == real, (readiness, event, number)
                if has_fired():
                    fired.add((readiness, event))

    assert fired == (LEFT_ALONE if policy is Policy.KEY_STRICT_FIFO else set())


def test_a_released_job_without_a_policy_slot_can_be_deferred(sessions):
    first = Subject.send(sessions, "q", Policy.STATELY)
    first.claim()
    first.fail(dead=True)
    job = NewJob(singleton_key="key")
    id = sessions.run(OWN, lambda own: sessions.store.sending.send("q", job, own=own))
    released = Subject(sessions, "q", id)
    released.claim()
    first.do(Action.RETRY)  # it takes the slot of the key's job that waits for another attempt
    released.do(Action.RELEASE)
    first.claim()
    first.fail(delay=3600)
    run_event(first, ReadinessEvent.ADMIT, 0)
    assert released.readiness() is Readiness.READY

    run_event(released, ReadinessEvent.UPDATE_JOBS, 0)

    assert released.readiness() is Readiness.DEFERRED
