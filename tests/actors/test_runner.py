"""Whatever a handler does becomes one outcome, and harms nobody else."""

import json
import signal
from uuid import uuid4

import pytest
import trio
from scripted_ports import ids, make_job, outputs

from trioboss import BatchFailed
from trioboss.errors import LeaseLost
from trioboss.events import JobCompleted, JobFailed, JobReleased
from trioboss.machines.attempt import CancelReason
from trioboss.model.settle_and_claim import Failure


async def run_all(work, open_worker, handler, count=1, **options):
    """Run a handler on some jobs, without retries, beside a neighbour; return what was accepted."""
    work.retries = False
    jobs = work.send(count)
    work.send(1, queue="neighbour")
    seen = []

    async def dispatch(job):
        if (job[0] if isinstance(job, list) else job).queue == "neighbour":
            seen.append(job)
            return None
        return await handler(job)

    with trio.fail_after(1000):
        async with open_worker(
            dispatch, queue="*", queues=("q", "neighbour"), **{"concurrency": 2, **options}
        ):
            await work.until(lambda: len(work.outcomes) == count + 1)
    assert len(seen) == 1
    assert not work.active
    return [outputs(work)[id] for id in ids(jobs)]


def error_of(outcome):
    assert isinstance(outcome, Failure)
    assert outcome.error is not None
    return json.loads(outcome.error)


@pytest.mark.parametrize(
    ("value", "output"), [(None, "null"), (1, "1"), ({"a": [True]}, '{"a":[true]}'), ("x", '"x"')]
)
async def test_what_a_handler_returns_is_the_output(work, open_worker, value, output):
    async def handler(job):
        return value

    assert await run_all(work, open_worker, handler) == [output]


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class MuteError(Exception):
    def __str__(self):
        return None


@pytest.mark.parametrize(
    "error",
    [
        ValueError("wrong"),
        ExceptionGroup("several", [ValueError("a"), TypeError("b")]),
        BaseExceptionGroup("nested", [ExceptionGroup("inner", [ValueError("a")]), KeyboardInterrupt()]),
        KeyboardInterrupt(),
        SystemExit(3),
        GeneratorExit(),
        StopAsyncIteration(),
        SilentError(),
        MuteError(),
        ValueError("\0 and \ud800"),
        ValueError("x" * 10_000_000),
        trio.TooSlowError(),
        trio.TrioInternalError("not really"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_a_handler_raises_is_its_failure(work, open_worker, events, error):
    async def handler(job):
        raise error

    (failure,) = await run_all(work, open_worker, handler)

    described = error_of(failure)
    assert described["name"] == type(error).__name__
    assert len(described["stack"]) < 10_000
    (failed,) = await events.wait_for(JobFailed)
    assert failed.error.startswith(type(error).__name__)
    assert len(failed.error) <= 500
    assert "\n" not in failed.error


async def test_whatever_is_raised_after_waiting_is_the_same(work, open_worker):
    async def handler(job):
        await trio.sleep(1)
        raise KeyboardInterrupt

    (failure,) = await run_all(work, open_worker, handler)

    assert error_of(failure)["name"] == "KeyboardInterrupt"


async def test_a_nursery_that_falls_apart_is_a_failure(work, open_worker):
    async def handler(job):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            raise ValueError("wrong")

    (failure,) = await run_all(work, open_worker, handler)

    assert error_of(failure)["name"] == "ExceptionGroup"
    assert "ValueError: wrong" in error_of(failure)["stack"]


@pytest.mark.parametrize(
    "value", [object(), {1: 2}, float("nan"), b"bytes", "\0", (1,), [[]] * 3 + [{1}], "x" * 2000]
)
async def test_what_json_cannot_hold_is_a_failure_that_names_the_place(work, open_worker, value):
    async def handler(job):
        return value

    (failure,) = await run_all(work, open_worker, handler)

    assert error_of(failure)["name"] == "PayloadError"
    assert error_of(failure)["message"].startswith("output")


async def test_a_handler_may_cancel_scopes_of_its_own(work, open_worker):
    async def handler(job):
        with trio.move_on_after(5):
            await trio.sleep_forever()
        with trio.CancelScope() as scope:
            scope.cancel()
            await trio.sleep_forever()
        return "done"

    assert await run_all(work, open_worker, handler) == ['"done"']


async def test_a_cancelled_that_leaks_from_somewhere_is_a_failure(work, open_worker):
    async def steal():
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.sleep_forever()
            except trio.Cancelled as error:
                stolen = error
        return stolen

    async def handler(job):
        raise await steal()

    failures = await run_all(work, open_worker, handler, count=3)

    assert [error_of(failure)["name"] for failure in failures] == ["Cancelled"] * 3


async def test_a_group_of_leaked_cancelled_is_a_failure_too(work, open_worker):
    async def handler(job):
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.sleep_forever()
            except trio.Cancelled as error:
                stolen = error
        raise BaseExceptionGroup("stolen", [stolen])

    (failure,) = await run_all(work, open_worker, handler)

    assert isinstance(failure, Failure)


@pytest.fixture
def from_a_terminal():
    """Who is started in the background ignores SIGINT, and so do its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("from_a_terminal")
def test_an_interrupt_from_the_terminal_hits_the_main_task_and_no_handler(work, open_worker):
    hit = []

    async def handler(job):
        try:
            signal.raise_signal(signal.SIGINT)
            await trio.sleep(1)
        except KeyboardInterrupt:
            hit.append(job)
        return "unharmed"

    with pytest.raises(BaseExceptionGroup) as caught:
        trio.run(run_all, work, open_worker, handler)

    assert caught.group_contains(KeyboardInterrupt)
    assert not hit


# -- what a handler can ask for


async def test_a_handler_can_ask_for_a_retry_with_a_delay_and_a_reason(work, open_worker):
    async def handler(job):
        raise job.retry(delay=7, reason="not yet")

    (failure,) = await run_all(work, open_worker, handler)

    assert failure.delay == 7
    assert not failure.dead
    assert error_of(failure) == {"message": "not yet"}


async def test_a_retry_without_a_delay_uses_the_jobs_own(work, open_worker):
    async def handler(job):
        raise job.retry()

    (failure,) = await run_all(work, open_worker, handler)

    assert failure.delay is None
    assert error_of(failure) == {"message": "the handler asked for a retry"}


async def test_a_handler_can_give_a_job_up(work, open_worker):
    async def handler(job):
        raise job.dead_letter("hopeless")

    (failure,) = await run_all(work, open_worker, handler)

    assert failure.dead
    assert error_of(failure) == {"message": "hopeless"}


async def test_a_reason_that_is_not_text_is_no_obstacle(work, open_worker):
    async def handler(job):
        raise job.retry(reason=object())

    (failure,) = await run_all(work, open_worker, handler)

    assert "object" in error_of(failure)["message"]


async def test_a_job_shows_what_it_is(work, open_worker):
    job = make_job({"x": 1}, retry_count=1, singleton_key="k")
    work.add(job)
    seen = []

    async def handler(running):
        seen.append(
            (
                running.id,
                running.queue,
                running.data,
                running.attempt,
                running.retry_count,
                running.singleton_key,
                running.cancelled,
                running.job.id,
            )
        )
        with pytest.raises(AttributeError):
            _ = running.nothing_of_the_kind

    async with open_worker(handler):
        await work.until(lambda: work.outcomes)

    assert seen == [(job.id, "q", {"x": 1}, 1, 1, "k", None, job.id)]


async def test_a_job_that_was_completed_by_its_handler_is_not_settled_again(work, open_worker):
    async def handler(job):
        await job.complete("early")
        raise ValueError("too late")

    assert await run_all(work, open_worker, handler) == ['"early"']


async def test_who_has_lost_the_lease_is_told_and_cancelled(work, open_worker):
    (job,) = work.send()
    reasons = []
    cancelled = trio.Event()

    async def handler(running):
        work.lose(job)
        with pytest.raises(LeaseLost):
            await running.progress(1)
        reasons.append(running.cancelled)
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()

    async with open_worker(handler):
        await cancelled.wait()

    assert reasons == ["lease_lost"]
    assert not work.outcomes


# -- batches


async def test_a_batch_handler_gets_up_to_so_many_jobs_at_once(work, open_worker):
    sizes = []

    async def handler(jobs):
        sizes.append(len(jobs))

    assert await run_all(work, open_worker, handler, count=7, batch_size=5) == ["null"] * 7
    assert sorted(sizes) == [2, 5]


async def test_a_batch_may_return_an_output_for_each(work, open_worker):
    async def handler(jobs):
        return {job.id: job.data * 10 for job in jobs if job.data}

    assert await run_all(work, open_worker, handler, count=3, batch_size=5) == ["null", "10", "20"]


async def test_ids_in_the_answer_may_be_text(work, open_worker):
    async def handler(jobs):
        return {str(job.id): job.data for job in jobs}

    assert await run_all(work, open_worker, handler, count=2, batch_size=5) == ["0", "1"]


@pytest.mark.parametrize(
    "answer", [lambda id: [1, 2], lambda id: "text", lambda id: {id: 1, uuid4(): 2}, lambda id: 0]
)
async def test_an_answer_that_is_not_by_the_ids_of_the_batch_is_a_failure(work, open_worker, answer):
    async def handler(jobs):
        return answer(jobs[0].id)

    failures = await run_all(work, open_worker, handler, count=2, batch_size=5)

    assert [error_of(failure)["name"] for failure in failures] == ["UsageError", "UsageError"]


async def test_a_batch_that_fails_for_some_in_a_nursery_has_failed_for_those(work, open_worker):
    async def handler(jobs):
        async with trio.open_nursery():
            raise BatchFailed({jobs[1].id: ValueError("this one")})

    first, second = await run_all(work, open_worker, handler, count=2, batch_size=2)

    assert first == "null"
    assert error_of(second)["message"] == "this one"


@pytest.mark.parametrize("depth", [1, 2])
async def test_what_a_handler_asks_for_in_a_nursery_counts(work, open_worker, depth):
    async def handler(job):
        async with trio.open_nursery() as nursery:
            if depth == 2:
                nursery.start_soon(ask, job)
            else:
                await ask(job)

    async def ask(job):
        async with trio.open_nursery():
            raise job.dead_letter("no") if job.data else job.retry(delay=3, reason="later")

    later, never = await run_all(work, open_worker, handler, count=2)

    assert (later.delay, error_of(later)["message"]) == (3, "later")
    assert (never.dead, error_of(never)["message"]) == (True, "no")


async def test_one_output_that_json_cannot_hold_fails_one_job(work, open_worker):
    async def handler(jobs):
        return {jobs[0].id: object(), jobs[1].id: "fine"}

    first, second = await run_all(work, open_worker, handler, count=2, batch_size=2)

    assert error_of(first)["name"] == "PayloadError"
    assert second == '"fine"'


@pytest.mark.parametrize("as_text", [False, True])
async def test_a_batch_may_fail_for_some(work, open_worker, as_text):
    async def handler(jobs):
        key = str(jobs[1].id) if as_text else jobs[1].id
        raise BatchFailed({key: ValueError("this one")})

    first, second, third = await run_all(work, open_worker, handler, count=3, batch_size=3)

    assert (first, third) == ("null", "null")
    assert error_of(second)["message"] == "this one"


async def test_a_batch_may_ask_for_a_retry_of_some(work, open_worker):
    async def handler(jobs):
        raise BatchFailed({jobs[0].id: jobs[0].retry(delay=3), jobs[1].id: jobs[1].dead_letter("no")})

    first, second = await run_all(work, open_worker, handler, count=2, batch_size=2)

    assert first.delay == 3
    assert second.dead


async def test_an_error_about_other_jobs_fails_the_batch(work, open_worker):
    async def handler(jobs):
        raise BatchFailed({uuid4(): "who?"})

    failures = await run_all(work, open_worker, handler, count=2, batch_size=2)

    assert all(isinstance(failure, Failure) for failure in failures)


async def test_an_error_that_is_not_json_is_no_obstacle(work, open_worker):
    async def handler(jobs):
        raise BatchFailed({jobs[0].id: object()})

    failure, _ = await run_all(work, open_worker, handler, count=2, batch_size=2)

    assert "object" in error_of(failure)["message"]


async def test_a_batch_that_raises_fails_as_a_whole(work, open_worker):
    async def handler(jobs):
        raise ValueError("all of them")

    failures = await run_all(work, open_worker, handler, count=3, batch_size=3)

    assert [error_of(failure)["message"] for failure in failures] == ["all of them"] * 3


async def test_a_batch_is_of_one_queue(work, open_worker):
    work.send(2, queue="a")
    work.send(2, queue="b")
    batches = []

    async def handler(jobs):
        batches.append([job.queue for job in jobs])

    async with open_worker(handler, queue="*", queues=("a", "b"), batch_size=4):
        await work.until(lambda: len(work.outcomes) == 4)

    assert sorted(batches) == [["a", "a"], ["b", "b"]]


# -- being cancelled


async def test_a_batch_is_cancelled_only_when_all_its_jobs_are(work, open_worker):
    jobs = work.send(2)
    woken = []

    async def handler(batch):
        try:
            await trio.sleep(10)
            woken.append("by itself")
        except trio.Cancelled:
            woken.append("cancelled")
            raise

    async with open_worker(handler, batch_size=2) as worker:
        await work.until_running(2)
        (running,) = [r for r in worker.slots.running if r.job.id == jobs[0].id]
        running.cancel(CancelReason.CANCELLED)
        await work.until(lambda: work.outcomes)

    assert woken == ["by itself"]
    assert ids(jobs)[1:] == [id for id, _, _ in work.outcomes]


async def test_a_handler_that_ends_well_although_it_is_stopped_has_completed_its_job(
    work, open_worker, events
):
    work.send()

    async def handler(job):
        with trio.CancelScope(shield=True):
            await trio.sleep(10.5)
        return "finished"

    async with open_worker(handler, grace=10):
        await work.until_running()

    assert [outcome for _, _, outcome in work.outcomes] == ['"finished"']
    await events.wait_for(JobCompleted)


async def test_a_handler_that_swallows_its_cancellation_and_returns_has_completed_its_job(work, open_worker):
    work.send()

    async def handler(job):
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            return "swallowed"

    async with open_worker(handler, grace=10):
        await work.until_running()

    assert [outcome for _, _, outcome in work.outcomes] == ['"swallowed"']


async def test_a_handler_that_fails_because_it_is_stopped_has_not_failed(work, open_worker, events):
    work.send()

    async def handler(job):
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise ValueError("interrupted") from None

    async with open_worker(handler, grace=10):
        await work.until_running()

    assert [outcome for _, _, outcome in work.outcomes] == ["released"]
    await events.wait_for(JobReleased)
