"""Seed 003, lines 450 to 665: how pg-boss 10 sends jobs; and what pg-boss 6 has for it."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from conformance_rows import row

import trioboss
from trioboss import NewJob, UsageError


@row("003:450", "003:452", "003:456", "004:322")
def test_send_returns_the_id_or_none_where_the_job_is_refused(b, make):
    q = make(policy="short")

    assert isinstance(b.send(q, {"a": 1}, priority=3), UUID)
    assert b.send(q) is None


@row("003:465")
def test_a_higher_priority_goes_first(b, make):
    q = make()
    for priority in (2, 4, 1, 3):
        b.send(q, priority, priority=priority)

    assert [job.data for job in b.fetch(q, batch_size=9)] == [4, 3, 2, 1]


@row("003:475", "003:521")
def test_the_defaults_are_those_of_pg_boss_12(b, make):
    job = b.get_job_by_id(q := make(), b.send(q))

    assert (job.retry_limit, job.retention) == (2, 14 * 86400)


@row("003:479", "003:487", "003:491", "003:509", "003:561")
def test_options_of_send_and_durations_as_timedeltas(b, make):
    q = make()
    options = {"retry_delay": 2, "retry_backoff": True, "expire_in": timedelta(hours=2)}
    id = b.send(q, retention=timedelta(days=2), singleton_seconds=timedelta(hours=1), **options)
    job = b.get_job_by_id(q, id)

    assert (job.retry_delay, job.retry_backoff, job.expire_in, job.retention) == (2, True, 7200, 2 * 86400)


@row("003:505")
def test_a_job_that_waited_for_too_long_leaves_no_trace(b, make, sql, advance):
    q = make()
    id = b.send(q, retention=5)
    advance(10)
    b._execute(b._store.retention.prune())

    assert b.get_job_by_id(q, id) is None


@row("003:540", "003:542", "003:543", "003:621", "004:373")
def test_a_start_is_seconds_or_an_instant_with_a_zone(b, make):
    q = make()
    later = datetime.now(UTC) + timedelta(hours=1)
    for start in (3600, later, later.isoformat(), timedelta(hours=1)):
        b.send(q, start_after=start)
        b.send_after(q, None, start)

    assert b.fetch(q) == []
    for naive in (later.replace(tzinfo=None), "2030-01-01T00:00:00"):
        with pytest.raises(UsageError, match="has no time zone"):
            b.send(q, start_after=naive)


@row("003:551")
def test_a_key_alone_refuses_nothing_on_a_standard_queue(b, make):
    q = make()

    assert [b.send(q, singleton_key="k") is not None for _ in range(2)] == [True, True]
    assert [b.send_once(q, None, "k") is not None for _ in range(2)] == [True, False]
    assert "refuses nothing" in trioboss.Boss.send.__doc__


@row("003:560", "003:628", "004:391")
def test_a_throttle_accepts_one_job_a_slot(b, make, advance):
    q = make()

    assert [b.send_throttled(q, None, 60, key) is not None for key in ("a", "a", "b")] == [True, False, True]
    b.complete(q, b.fetch(q, batch_size=2))
    assert b.send(q, singleton_seconds=60, singleton_key="a") is None
    advance(60)
    assert b.send(q, singleton_seconds=60, singleton_key="a") is not None


@row("003:563", "003:634", "004:399")
def test_a_debounced_job_gets_the_next_slot(b, make, advance):
    q = make()
    ids = [b.send_debounced(q, None, 3600) for _ in range(3)]

    assert [id is not None for id in ids] == [True, True, False]
    assert b.get_job_by_id(q, ids[1]).start_after == b._store.context.now + timedelta(hours=1)


@row("003:575")
def test_a_job_has_a_dead_letter_queue_of_its_own(b, make):
    dead, q = make(), make(retry_limit=0)
    b.send(q, 5, dead_letter=dead)
    b.fail(q, b.fetch(q))

    assert [dead_letter.data for dead_letter in b.find_jobs(dead)] == [5]


@row("003:595", "004:347")
def test_a_request_is_one_argument(b, make):
    q = make()
    b.send({"name": q, "data": 1, "options": {"priority": 2}})
    b.send({"queue": q, "data": 2, "priority": 1})
    b.send(q, NewJob(3))

    assert [job.data for job in b.fetch(q, batch_size=9)] == [1, 2, 3]


@row("003:640", "003:650")
def test_insert_takes_many_jobs_with_all_options(b, make):
    dead, q = make(), make()
    options = {
        "id": uuid4(),
        "data": {},
        "priority": 1,
        "retry_limit": 1,
        "retry_delay": 1,
        "retry_backoff": True,
    }
    options |= {"start_after": 0, "singleton_key": "k", "expire_in": 60, "dead_letter": dead}

    assert b.insert(q, [options, NewJob(2)]) == 2
    job = b.get_job_by_id(q, options["id"])
    assert {name: getattr(job, name) for name in options if name != "start_after"} == {
        name: value for name, value in options.items() if name != "start_after"
    }


@row("003:644")
def test_insert_debounces_too(b, make, advance):
    q = make()
    job = {"singleton_seconds": 60, "singleton_next_slot": True}

    assert b.insert(q, [job, job, job]) == 2


@row("003:649", "003:660")
def test_insert_is_for_one_queue_and_has_no_time_to_keep_until(b, make):
    q = make()
    for job in ({"name": q}, {"keep_until": "2030-01-01"}):
        with pytest.raises(UsageError, match="unexpected option"):
            b.insert(q, [job])
    assert b.insert(q, [{"retention": 60}]) == 1


@row("004:381", "004:387")
def test_once_counts_unended_jobs_and_singleton_queued_ones(b, make):
    q = make()
    assert [b.send_once(q, None, "k") is not None for _ in range(2)] == [True, False]
    (job,) = b.fetch(q)
    assert b.send_once(q, None, "k") is None
    b.complete(q, job)
    assert b.send_once(q, None, "k") is not None
    s = make()
    assert [b.send_singleton(s, None) is not None for _ in range(2)] == [True, False]
    b.fetch(s)
    assert b.send_singleton(s, None) is not None


@row("003:845", "003:849", "003:853")
def test_events_are_published_to_all_subscribers(b, make):
    event = make()  # any name that no other row has
    queues = [make(), make()]
    for q in (*queues, queues[0]):
        b.subscribe(event, q)

    assert len(b.publish(event, {"a": 1}, priority=4)) == 2
    assert [(job.data, job.priority) for q in queues for job in b.fetch(q)] == [({"a": 1}, 4)] * 2
    b.unsubscribe(event, queues[0])
    assert len(b.publish(event)) == 1
