"""BulkPoller: thousands of queues cost one statement to start on, and one after a gap."""

import pytest
import trio
import trio.testing
from scripted_ports import Fault, make_job

NAMES = tuple(f"q{number}" for number in range(100))


def surveys(work):
    return [queues for call, queues in work.calls if call == "bulk_poll"]


@pytest.fixture
def done():
    return []


@pytest.fixture
def handler(done):
    async def handler(job):
        done.append(job.data)

    return handler


async def test_many_idle_queues_are_looked_at_together(work, open_worker, handler):
    async with open_worker(handler, queue="*", queues=NAMES):
        await trio.testing.wait_all_tasks_blocked()

        assert [sorted(queues) for queues in surveys(work)] == [sorted(NAMES)]
        assert work.exchanges == []


async def test_only_those_with_something_to_do_ask(work, open_worker, handler, done):
    work.add(make_job("now", queue="q7"))
    work.deferred.append((trio.current_time() + 50, make_job("later", queue="q8")))
    async with open_worker(handler, queue="*", queues=NAMES):
        await trio.testing.wait_all_tasks_blocked()
        assert done == ["now"]
        assert {exchange.queue for exchange in work.exchanges} == {"q7"}

        await work.until(lambda: len(done) == 2)
        assert trio.current_time() == pytest.approx(50)
        assert {exchange.queue for exchange in work.exchanges} == {"q7", "q8"}


async def test_who_is_rung_before_the_answer_asks_for_itself_and_marks_itself(
    work, open_worker, handler, done
):
    work.go_wrong("bulk_poll", Fault(None, seconds=1000.0))
    async with open_worker(handler, queue="*", queues=NAMES) as worker:
        await trio.testing.wait_all_tasks_blocked()
        work.add(make_job("rung", queue="q3"))
        worker.dispatchers["q3"].ring()
        await trio.testing.wait_all_tasks_blocked()

        assert done == ["rung"]
        assert work.exchanges[0].idle is True


async def test_a_survey_that_fails_is_repeated(work, open_worker, handler, done):
    work.add(make_job("found", queue="q5"))
    work.go_wrong("bulk_poll", Fault(), Fault())
    async with open_worker(handler, queue="*", queues=NAMES):
        await work.until(lambda: done)

        assert len(surveys(work)) == 3
        assert {exchange.queue for exchange in work.exchanges} == {"q5"}


async def test_after_a_gap_one_more_survey_is_all(work, open_worker, handler):
    async with open_worker(handler, queue="*", queues=NAMES) as worker:
        await trio.testing.wait_all_tasks_blocked()

        worker.reconnected()
        await trio.testing.wait_all_tasks_blocked()

        assert len(surveys(work)) == 2
        assert work.exchanges == []


async def test_an_answer_from_before_the_gap_counts_for_nothing(work, open_worker, handler):
    """The server may have crashed in the meantime, and lost the marks."""
    slow = Fault(None, after=True, seconds=5.0)
    work.go_wrong("bulk_poll", slow, slow)
    async with open_worker(handler, queue="*", queues=NAMES) as worker:
        machines = [dispatcher.machine for dispatcher in worker.dispatchers.values()]
        await trio.sleep(1.0)
        worker.reconnected()

        await trio.sleep(6.0)
        assert not any(machine.has_marker for machine in machines)
        await trio.sleep(6.0)
        assert all(machine.has_marker for machine in machines)


async def test_who_has_jobs_asks_for_itself_after_a_gap(work, open_worker):
    async def forever(job):
        await trio.sleep_forever()

    work.add(make_job(queue="q9"))
    async with open_worker(forever, queue="*", queues=NAMES, concurrency=2, grace=0) as worker:
        await work.until_running()
        count = len(work.exchanges)

        worker.reconnected()
        await trio.testing.wait_all_tasks_blocked()

        assert "q9" not in surveys(work)[-1]
        assert {exchange.queue for exchange in work.exchanges[count:]} == {"q9"}


async def test_a_few_queues_ask_for_themselves(work, open_worker, handler):
    async with open_worker(handler, queue="*", queues=NAMES[:3]):
        await trio.testing.wait_all_tasks_blocked()

        assert surveys(work) == []
        assert {exchange.queue for exchange in work.exchanges} == set(NAMES[:3])
