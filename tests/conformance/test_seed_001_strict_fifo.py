"""Seed 001: the design of strict FIFO."""

import psycopg
import pytest
from conformance_rows import row

import trioboss
from trioboss import UsageError


@pytest.fixture
def fifo(make):
    """A queue of the policy, under the name that the design has for it."""
    return make(policy="singleton_strict_fifo", retry_limit=1, retry_delay=60)


@row("001:16", "001:60", "001:167")
def test_the_policy_has_the_name_of_the_design_too(b, make):
    q = make(policy="singleton_strict_fifo", expire_in=300, retention=604800)
    queue = b.get_queue(q)

    assert (queue.policy, queue.expire_in, queue.retention) == ("key_strict_fifo", 300, 604800)
    assert "live_job_owner" in trioboss.construction_plans("x")


@row("001:7", "001:133", "001:137")
def test_one_job_of_each_key_is_active_and_keys_run_in_parallel(b, fifo):
    for key in ("a", "b", "a", "b"):
        b.send(fifo, key, singleton_key=key)
    jobs = b.fetch(fifo, batch_size=9)

    assert sorted(job.data for job in jobs) == ["a", "b"]
    b.send(fifo, "c", singleton_key="c")
    assert [job.data for job in b.fetch(fifo, batch_size=9)] == ["c"]


@row("001:8", "001:9", "001:10", "001:42", "001:49", "001:106", "001:128", "001:129")
def test_a_job_of_a_key_goes_on_before_the_next(b, fifo):
    b.send(fifo, 1, singleton_key="order-123")
    b.send(fifo, 2, singleton_key="order-123")
    (job,) = b.fetch(fifo)
    b.fail(fifo, job)
    assert (b.get_job_by_id(fifo, job.id).state, b.fetch(fifo)) == ("retry", [])
    assert b.get_blocked_keys(fifo) == []
    (again,) = b.fetch(fifo, ignore_start_after=True)
    assert (again.id, again.attempt) == (job.id, 2)
    b.fail(fifo, again)
    assert b.get_blocked_keys(fifo) == ["order-123"]
    b.retry(fifo, job.id)
    retried = b.get_job_by_id(fifo, job.id)
    assert (retried.state, retried.retry_limit) == ("retry", 2)
    (third,) = b.fetch(fifo)
    assert third.id == job.id
    b.fail(fifo, third)
    b.delete_job(fifo, job.id)

    assert [job.data for job in b.fetch(fifo)] == [2]


@row("001:34", "001:40", "001:41")
def test_the_database_refuses_a_second_owner_of_a_key(b, fifo, sql):
    b.send(fifo, 1, singleton_key="k")
    second = b.send(fifo, 2, singleton_key="k")
    b.fetch(fifo)

    with pytest.raises((psycopg.errors.UniqueViolation, psycopg.errors.CheckViolation)):
        sql("update trioboss.live_job set readiness = 'active' where id = %s", second)
    with pytest.raises(psycopg.errors.UniqueViolation):
        sql("update trioboss.live_job set owner = 'key:k' where id = %s", second)


@row("001:47")
def test_a_completed_job_lets_the_next_one_run(b, fifo):
    for number in range(3):
        b.send(fifo, number, singleton_key="k")
    order = []
    while jobs := b.fetch(fifo):
        order += [job.data for job in jobs]
        b.complete(fifo, jobs)

    assert order == [0, 1, 2]


@row("001:76")
def test_send_takes_a_key_and_options_of_retries(b, fifo):
    id = b.send(fifo, singleton_key="k", retry_limit=3, retry_delay=2, retry_backoff=True)
    job = b.get_job_by_id(fifo, id)

    assert (job.singleton_key, job.retry_limit, job.retry_delay, job.retry_backoff) == ("k", 3, 2, True)


@row("001:115", "001:122")
def test_blocked_keys_are_sorted_each_once_and_only_of_this_policy(b, make):
    q = make(policy="key_strict_fifo", retry_limit=0)
    for key in ("b", "a", "a"):
        b.send(q, singleton_key=key)
    b.fail(q, b.fetch(q, batch_size=9))

    assert b.get_blocked_keys(q) == ["a", "b"]
    with pytest.raises(UsageError):
        b.get_blocked_keys(make(policy="singleton"))
