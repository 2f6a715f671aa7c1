"""Seed 002: queue internals and delivery."""

from conformance_rows import row

import trioboss
from trioboss import events


@row("002:7")
def test_a_job_is_queued_again_when_its_time_is_over(b, make, advance):
    q = make()
    id = b.send(q)
    b.fetch(q)

    def rescued(after):
        advance(after)
        b._execute(b._store.maintenance.rescue_leases(5.0, 0.0, warnings=False, certain=False, queue=q))
        return b.get_job_by_id(q, id).state

    assert (rescued(after=899), rescued(after=2)) == ("active", "retry")


@row("002:2", "002:4", "002:8", "002:13")
def test_a_queue_overrides_the_defaults_of_its_life_cycle(b, make):
    default, own = b.get_queue(make()), b.get_queue(make(expire_in=60, max_lease_extensions=9))

    assert (default.expire_in, default.max_lease_extensions) == (900, 3)
    assert (own.expire_in, own.max_lease_extensions) == (60, 9)


@row("002:8b", "002:16e")
def test_a_lease_is_extended_so_many_times_and_then_the_call_is_refused(seen):
    assert len(seen.of(events.LeaseExtended)) == 3
    assert isinstance(seen.values["reasons"]["extend"], trioboss.UsageError)
    assert "max_lease_extensions" in seen.values["extended"].output["message"]


@row("002:9", "002:9b", "002:9c")
def test_heartbeats_are_off_by_default_move_no_expiry_and_can_be_sent_by_the_handler(b, make, seen):
    assert b.get_queue(make()).heartbeat is None
    assert seen.values["expired"].state == "failed"  # although its heartbeats were sent
    assert seen.values["touched"].state == "completed"
    assert seen.values["silent"].state == "failed"


@row("002:10", "002:10b", "002:12", "002:12b", "002:12c", "002:12d")
def test_a_backoff_begins_with_a_second_grows_and_begins_anew_after_a_window(b, make, advance):
    q = make(retry_limit=9, retry_backoff=True, retry_window=1000, retry_jitter=0)
    tripled = make(retry_backoff=True, retry_multiplier=3, retry_jitter=0.25)
    queue = b.get_queue(make(retry_backoff=True))
    assert (queue.retry_window, queue.retry_delay_max) == (None, None)
    assert (queue.retry_jitter, queue.retry_multiplier) == (0.5, 2)

    def delay(q):
        (job,) = b.fetch(q)
        b.fail(q, job)
        wait = (b.get_job_by_id(q, job.id).start_after - b._store.context.now).total_seconds()
        advance(wait)
        return wait

    b.send(q)
    assert [delay(q), delay(q), delay(q)] == [2, 4, 8]
    advance(2000)
    assert delay(q) == 2
    b.send(tripled)
    assert 0.75 * 3 <= delay(tripled) <= 3


@row("002:11", "002:11b")
def test_the_number_of_tries_is_that_of_the_queue_or_of_the_call(b, make):
    dead = make()
    q = make(dead_letter=dead)
    assert b.get_queue(q).retry_limit == 2
    b.send(q, retry_limit=0)
    b.fail(q, b.fetch(q))

    assert len(b.find_jobs(dead)) == 1


@row("002:12e", "002:16c", "002:16d")
def test_a_handler_asks_for_a_retry_with_a_delay_and_a_reason(seen):
    job = seen.values["again"]

    assert (job.state, job.attempt, job.retry_count) == ("completed", 2, 1)
    failed = [event for event in seen.of(events.JobFailed) if event.id == job.id]
    assert [(event.state, event.error) for event in failed] == [("retry", "later")]


@row("002:15", "002:16", "002:16b")
def test_a_handler_completes_its_job_with_an_output(seen):
    assert seen.values["complete"].output == {"p": 1}


@row("002:16f")
def test_a_handler_gives_a_job_up(seen):
    assert (seen.values["dead"].state, seen.values["dead"].retry_count) == ("failed", 0)
    assert "dead" in [dead_letter.data for dead_letter in seen.values["letters"]]


@row("002:20", "002:20b", "002:20c", "002:20d", "002:20e")
def test_the_metrics_of_a_queue(b, make):
    dead = make()
    q = make(dead_letter=dead, retry_delay=60)
    b.insert(q, [{"priority": 9, "retry_limit": 0}, {"priority": 8}, {"priority": 7}, {}])
    b.fail(q, b.fetch(q))
    b.fail(q, b.fetch(q))
    b.fetch(q)
    stats = b.get_queue_stats(q)

    assert (stats.pending, stats.inflight, stats.dead_letter, stats.retries) == (2, 1, 1, 1)
    assert stats.oldest_age >= 0


@row("002:21", "002:21b")
def test_dead_letters_are_listed_and_sent_again(b, make):
    dead = make()
    q = make(dead_letter=dead, retry_limit=0)
    b.send(q, 1)
    b.fail(q, b.fetch(q))
    assert [dead_letter.source_queue for dead_letter in b.find_jobs(dead)] == [q]

    assert b.redrive(dead).destinations == {q: 1}
    assert [job.data for job in b.fetch(q)] == [1]


@row("002:22")
def test_the_last_failure_of_a_job_is_an_event_of_its_own(seen):
    failed = [event for event in seen.of(events.JobFailed) if event.id == seen.values["fail"].id]

    assert [event.state for event in failed] == ["retry", "retry", "failed"]
