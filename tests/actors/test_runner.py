"""Everything that a handler does becomes one outcome, and affects no other job."""

import signal

import pytest
import trio
from running_helpers import error_of, run_all
from scripted_ports import make_job

from trioboss.errors import LeaseLost
from trioboss.events import JobCompleted, JobFailed, JobReleased
from trioboss.model.settle_and_claim import Failure


@pytest.mark.parametrize(
    ("value", "output"), [(None, "null"), (1, "1"), ({"a": [True]}, '{"a":[true]}'), ("x", '"x"')]
)
async def test_the_return_value_of_a_handler_is_the_output(work, open_worker, value, output):
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
async def test_every_exception_of_a_handler_is_its_failure(work, open_worker, events, error):
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


async def test_an_exception_after_a_checkpoint_is_a_failure(work, open_worker):
    async def handler(job):
        await trio.sleep(1)
        raise KeyboardInterrupt

    (failure,) = await run_all(work, open_worker, handler)

    assert error_of(failure)["name"] == "KeyboardInterrupt"


async def test_an_exception_group_of_a_nursery_is_a_failure(work, open_worker):
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
async def test_an_output_that_is_no_json_is_a_failure_that_names_it(work, open_worker, value):
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


async def test_a_cancelled_of_another_scope_is_a_failure(work, open_worker):
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


async def test_a_group_of_cancelled_of_another_scope_is_a_failure(work, open_worker):
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
    """Handle SIGINT: a process that was started in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("from_a_terminal")
def test_an_interrupt_from_the_terminal_is_raised_in_the_main_task_and_in_no_handler(work, open_worker):
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


async def test_a_handler_can_send_its_job_to_the_dead_letter_queue(work, open_worker):
    async def handler(job):
        raise job.dead_letter("hopeless")

    (failure,) = await run_all(work, open_worker, handler)

    assert failure.dead
    assert error_of(failure) == {"message": "hopeless"}


async def test_a_reason_that_is_not_text_is_converted(work, open_worker):
    async def handler(job):
        raise job.retry(reason=object())

    (failure,) = await run_all(work, open_worker, handler)

    assert "object" in error_of(failure)["message"]


async def test_a_job_has_the_attributes_of_its_row(work, open_worker):
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


async def test_a_handler_whose_lease_is_lost_gets_an_error_and_is_cancelled(work, open_worker):
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


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_retry_that_is_raised_in_a_nursery_counts(work, open_worker, depth):
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


async def test_a_handler_that_completes_although_it_is_cancelled_has_completed_its_job(
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


async def test_a_handler_that_raises_because_it_is_cancelled_has_not_failed(work, open_worker, events):
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
