"""Seed 000: the queues of pg-boss 12."""

import pydoc
import re
from datetime import timedelta

import psycopg
import pytest
from conformance_rows import row

import trioboss
from docs.pages.options import queue_options
from trioboss import QueueOptions, UsageError, events


@row("000:3", "000:21", "003:990")
def test_create_queue_makes_a_standard_queue(b, make):
    q = make()

    assert b.get_queue(q).policy == "standard"
    b.send_after(q, "deferred", 60)
    b.send(q, "low")
    b.send(q, "high", priority=1)
    assert b.send_throttled(q, "throttled", 3600, priority=-1) is not None
    assert b.send_throttled(q, "again", 3600) is None
    assert [job.data for job in b.fetch(q, batch_size=9)] == ["high", "low", "throttled"]


@row("000:22", "000:22b")
def test_short_allows_one_queued_for_each_key(b, make):
    q = make(policy="short")

    assert [b.send(q) is not None for _ in range(2)] == [True, False]
    assert [b.send(q, singleton_key=key) is not None for key in "aba"] == [True, True, False]
    b.fetch(q, batch_size=9)
    assert b.send(q) is not None
    assert len(b.fetch(q)) == 1


@row("000:23", "000:23b")
def test_singleton_allows_one_active_for_each_key(b, make):
    q = make(policy="singleton")
    for key in (None, None, "a", "b", "a", "b"):
        b.send(q, singleton_key=key)

    jobs = b.fetch(q, batch_size=9)

    assert sorted(str(job.singleton_key) for job in jobs) == ["None", "a", "b"]
    assert b.fetch(q, batch_size=9) == []


@row("000:24", "000:28")
def test_stately_allows_one_in_each_state_and_no_second_retry(b, make):
    q = make(policy="stately", retry_limit=5, retry_delay=60)
    assert [b.send(q) is not None for _ in range(2)] == [True, False]
    (first,) = b.fetch(q)
    assert b.send(q) is not None
    assert b.fetch(q) == []
    b.fail(q, first)
    b.fail(q, b.fetch(q))

    assert sorted(job.state for job in b.find_jobs(q)) == ["failed", "retry"]


@row("000:25", "000:25b")
def test_exclusive_allows_one_queued_or_active_for_each_key(b, make):
    q = make(policy="exclusive", retry_delay=60)
    b.send(q)
    assert b.send(q) is None
    assert b.send(q, singleton_key="k") is not None
    assert b.send(q, singleton_key="k") is None
    b.fail(q, b.fetch(q, batch_size=2))

    assert b.send(q) is None


@row("000:26", "001:72", "001:89")
def test_strict_fifo_requires_a_key_on_every_job(b, make, sql):
    q = make(policy="key_strict_fifo")

    with pytest.raises(UsageError, match=r"^key_strict_fifo queues require a singleton_key"):
        b.send(q)
    with pytest.raises(UsageError, match=r"jobs\[1\]: key_strict_fifo queues require a singleton_key"):
        b.insert(q, [{"singleton_key": "k"}, {}])
    with pytest.raises(psycopg.errors.NotNullViolation):
        sql("insert into trioboss.job (name) values (%s)", q)
    assert b.find_jobs(q) == []


@row("000:30", "000:30b")
def test_strict_fifo_runs_the_jobs_of_a_key_in_order_and_a_deferred_one_holds_up_nobody(b, make):
    q = make(policy="key_strict_fifo")
    with b.transaction() as conn:
        b.send(q, "deferred", singleton_key="k", start_after=60, conn=conn)
        for number in range(5):
            b.send(q, number, singleton_key="k", priority=number, conn=conn)
    order = []
    while jobs := b.fetch(q, batch_size=9):
        order += [job.data for job in jobs]
        b.complete(q, jobs)

    assert order == [0, 1, 2, 3, 4]


@row("000:31", "000:32", "000:33", "000:35", "000:35b", "000:148")
def test_a_key_is_blocked_by_an_active_a_retrying_and_a_failed_job(b, make):
    q = make(policy="key_strict_fifo", retry_limit=1, retry_delay=60)
    b.send(q, 1, singleton_key="k")
    b.send(q, 2, singleton_key="k")
    (job,) = b.fetch(q)
    assert b.fetch(q) == []
    b.fail(q, job)
    assert (b.fetch(q), b.get_blocked_keys(q)) == ([], [])
    (again,) = b.fetch(q, ignore_start_after=True)
    b.fail(q, again)
    assert (again.data, b.fetch(q), b.get_blocked_keys(q)) == (1, [], ["k"])
    b.retry(q, again.id)
    (third,) = b.fetch(q)
    b.fail(q, third)
    b.delete_job(q, third.id)

    assert [job.data for job in b.fetch(q)] == [2]
    with pytest.raises(UsageError, match="only key_strict_fifo blocks keys"):
        b.get_blocked_keys(make())


@row("000:37")
def test_a_partitioned_queue_has_a_table_of_its_own(b, make, sql):
    plain, own = make(), make(partition=True)
    b.send(own)

    assert not b.get_queue(plain).partition
    assert sql(f"select count(*) from trioboss.{b.get_queue(own).table_name}") == [(1,)]


@row("000:43", "000:43b")
def test_a_dead_letter_has_the_data_the_retention_and_the_retries_of_the_job(b, make):
    dead = make(expire_in=77)
    q = make(dead_letter=dead, retry_delay=5)
    id = b.send(q, {"a": 1}, retry_limit=0, retention=1000)
    b.fail(q, b.fetch(q), "broken")

    (dead_letter,) = b.find_jobs(dead)

    assert (dead_letter.data, dead_letter.source_queue, dead_letter.source_id) == ({"a": 1}, q, id)
    assert (
        dead_letter.retry_limit,
        dead_letter.retention,
        dead_letter.retry_delay,
        dead_letter.expire_in,
    ) == (0, 1000, 5, 77)


@row("000:47")
def test_a_queue_that_is_too_long_is_warned_of(seen):
    (warning,) = [event for event in seen.of(events.QueueWarning) if event.queue == "long"]

    assert warning.warning == "queue_size"


@row("000:53", "000:57", "000:61", "000:65", "000:71", "000:87", "000:112", "000:118", "000:122")
def test_the_defaults_of_a_queue(b, make):
    queue = b.get_queue(make())

    assert (queue.retry_limit, queue.retry_delay, queue.retry_backoff) == (2, 0, False)
    assert (queue.retry_delay_max, queue.heartbeat, queue.expire_in) == (None, None, 900)
    assert (queue.retention, queue.delete_after) == (14 * 86400, 7 * 86400)


@row("000:61b", "000:65b")
def test_a_backoff_is_half_random_and_has_a_maximum_only_where_there_is_a_backoff(b, make, advance):
    growing = make(retry_limit=9, retry_backoff=True, retry_delay=5, retry_delay_max=60)
    fixed = make(retry_delay=50, retry_delay_max=3)

    def delays(q, count):
        b.send(q)
        for _ in range(count):
            (job,) = b.fetch(q)
            b.fail(q, job)
            wait = (b.get_job_by_id(q, job.id).start_after - b._store.context.now).total_seconds()
            advance(wait)
            yield wait

    for n, wait in enumerate(delays(growing, 6), start=1):
        assert min(60, 5 * 2**n / 2) <= wait <= min(60, 5 * 2**n)
    assert list(delays(fixed, 1)) == [50]


@row("000:71b", "000:71c", "000:75", "000:77", "000:89", "000:99", "000:99b")
def test_heartbeats_and_expiry_are_independent(seen):
    assert seen.values["beat"].heartbeat_on > seen.values["beat"].started_on
    assert seen.values["silent fetch"] == "retry"
    assert seen.values["reasons"]["expire"] == "expired"
    assert (seen.values["expired"].state, seen.values["expired"].attempt) == ("failed", 2)
    assert seen.values["silent"].state == "failed"


@row("000:71d", "000:112b", "000:118c")
def test_the_limits_of_options(b, make):
    queue = b.get_queue(make(heartbeat=1, expire_in=0.5, retention=0.5))

    assert (queue.heartbeat, queue.expire_in, queue.retention) == (1, 0.5, 0.5)
    for options in ({"heartbeat": 0.5}, {"expire_in": 0}, {"retention": 0}):
        with pytest.raises(UsageError):
            make(**options)


@row("000:71e", "000:124")
def test_jobs_inherit_the_options_that_they_do_not_override(b, make):
    q = make(heartbeat=20, retry_limit=7, expire_in=60, delete_after=9)
    b.send(q)
    b.send(q, heartbeat=7, retry_limit=1)

    inherited, own = b.find_jobs(q)

    assert (inherited.heartbeat, inherited.retry_limit, inherited.expire_in, inherited.delete_after) == (
        20,
        7,
        60,
        9,
    )
    assert (own.heartbeat, own.retry_limit, own.expire_in) == (7, 1, 60)


@row("000:97", "000:103")
def test_values_for_expiry_and_heartbeats_are_recommended(b, make):
    # Where a user reads of them: the reference of all options, and help().
    options = {option.name: option for option in queue_options()}
    shown = pydoc.render_doc(QueueOptions, renderer=pydoc.plaintext)

    assert "upper bound of what a job may ever need" in options["expire_in"].meaning
    assert "20 to 60 are good values" in options["heartbeat"].meaning
    assert re.search(r"``expire_in``.*Set it to an upper bound", shown)
    assert re.search(r"``heartbeat``.*20 to 60 are good", shown)
    for seconds in (20, 60):
        assert b.get_queue(make(expire_in=900, heartbeat=seconds)).heartbeat == seconds


@row("000:118b")
def test_a_job_that_waited_for_too_long_is_deleted(seen):
    assert seen.values["old"] == []


@row("000:122b", "003:78b")
def test_ended_jobs_are_deleted_after_their_time_or_never(b, make, advance):
    kept, deleted = make(delete_after=0), make(delete_after=1)
    for q in (kept, deleted):
        b.send(q)
        b.complete(q, b.fetch(q))
    advance(2 * 3600)
    b._execute(b._store.retention.prune())

    assert (len(b.find_jobs(kept)), len(b.find_jobs(deleted))) == (1, 0)


@row("000:128", "000:128b")
def test_update_queue_changes_all_but_policy_and_partition(b, make):
    q = make()
    b.update_queue(q, retry_limit=7, expire_in=timedelta(minutes=1))

    assert (b.get_queue(q).retry_limit, b.get_queue(q).expire_in) == (7, 60)
    for options in ({"policy": "short"}, {"partition": True}):
        with pytest.raises(UsageError, match="cannot be changed"):
            b.update_queue(q, **options)


@row("000:132", "003:1015")
def test_delete_queue_deletes_live_jobs_and_keeps_the_archive(b, make):
    q = make()
    ended = b.send(q)
    b.complete(q, b.fetch(q))
    b.send(q)
    b.delete_queue(q)

    assert b.get_queue(q) is None
    assert [job.id for job in b.find_jobs(q)] == [ended]


@row("000:136", "000:140")
def test_queues_are_read(b, make):
    q = make()

    assert q in [queue.name for queue in b.get_queues()]
    assert (b.get_queue(q).name, b.get_queue("nowhere")) == (q, None)
    assert [queue.name for queue in b.get_queues([q])] == [q]


@row("000:144", "000:144b")
def test_the_numbers_of_a_queue_are_counted_now(b, make):
    q = make()
    b.insert(q, [{}, {}, {"start_after": 60}])
    b.fetch(q)
    stats = b.get_queue_stats(q)

    assert (stats.queued, stats.ready, stats.deferred, stats.active) == (2, 1, 1, 1)
    assert not hasattr(b.get_queue(q), "queued")
    with pytest.raises(trioboss.UnknownQueue):
        b.get_queue_stats("nowhere")
