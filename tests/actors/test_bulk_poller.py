"""BulkPoller: thousands of idle queues cost one statement at the start, and one after a reconnect."""

import pytest
import trio
import trio.testing
from scripted_ports import Fault, make_job

NAMES = tuple(f"q{number}" for number in range(100))


def bulk_polls(work):
    return [queues for call, queues in work.calls if call == "bulk_poll"]


@pytest.fixture
def done():
    return []


@pytest.fixture
def handler(done):
    async def handler(job):
        done.append(job.data)

    return handler


async def test_many_idle_queues_are_polled_in_one_statement(work, open_worker, handler):
    async with open_worker(handler, queue="*", queues=NAMES):
        await trio.testing.wait_all_tasks_blocked()

        assert [sorted(queues) for queues in bulk_polls(work)] == [sorted(NAMES)]
        assert work.statements == []


async def test_only_dispatchers_with_a_job_to_claim_claim(work, open_worker, handler, done):
    work.add(make_job("now", queue="q7"))
    work.deferred.append((trio.current_time() + 50, make_job("later", queue="q8")))
    async with open_worker(handler, queue="*", queues=NAMES):
        await trio.testing.wait_all_tasks_blocked()
        assert done == ["now"]
        assert {statement.queue for statement in work.statements} == {"q7"}

        await work.until(lambda: len(done) == 2)
        assert trio.current_time() == pytest.approx(50)
        assert {statement.queue for statement in work.statements} == {"q7", "q8"}


async def test_a_dispatcher_that_is_rung_before_the_answer_claims_and_sets_its_own_marker(
    work, open_worker, handler, done
):
    work.inject("bulk_poll", Fault(None, seconds=1000.0))
    async with open_worker(handler, queue="*", queues=NAMES) as worker:
        await trio.testing.wait_all_tasks_blocked()
        work.add(make_job("rung", queue="q3"))
        worker.dispatchers["q3"].ring()
        await trio.testing.wait_all_tasks_blocked()

        assert done == ["rung"]
        assert work.statements[0].request.idle is True


async def test_a_bulk_poll_that_fails_is_repeated(work, open_worker, handler, done):
    work.add(make_job("found", queue="q5"))
    work.inject("bulk_poll", Fault(), Fault())
    async with open_worker(handler, queue="*", queues=NAMES):
        await work.until(lambda: done)

        assert len(bulk_polls(work)) == 3
        assert {statement.queue for statement in work.statements} == {"q5"}


async def test_after_a_reconnect_one_bulk_poll_is_enough(work, open_worker, handler):
    async with open_worker(handler, queue="*", queues=NAMES) as worker:
        await trio.testing.wait_all_tasks_blocked()

        worker.reconnected()
        await trio.testing.wait_all_tasks_blocked()

        assert len(bulk_polls(work)) == 2
        assert work.statements == []


async def test_an_answer_from_before_the_reconnect_is_ignored(work, open_worker, handler):
    """The server may have crashed in the meantime, and lost the idle markers."""
    slow = Fault(None, after=True, seconds=5.0)
    work.inject("bulk_poll", slow, slow)
    async with open_worker(handler, queue="*", queues=NAMES) as worker:
        machines = [dispatcher.machine for dispatcher in worker.dispatchers.values()]
        await trio.sleep(1.0)
        worker.reconnected()

        await trio.sleep(6.0)
        assert not any(machine.has_marker for machine in machines)
        await trio.sleep(6.0)
        assert all(machine.has_marker for machine in machines)


async def test_a_dispatcher_with_running_jobs_claims_by_itself_after_a_reconnect(work, open_worker):
    async def forever(job):
        await trio.sleep_forever()

    work.add(make_job(queue="q9"))
    async with open_worker(forever, queue="*", queues=NAMES, concurrency=2, grace=0) as worker:
        await work.until_running()
        count = len(work.statements)

        worker.reconnected()
        await trio.testing.wait_all_tasks_blocked()

        assert "q9" not in bulk_polls(work)[-1]
        assert {statement.queue for statement in work.statements[count:]} == {"q9"}


async def test_the_dispatchers_of_a_few_queues_claim_by_themselves(work, open_worker, handler):
    async with open_worker(handler, queue="*", queues=NAMES[:3]):
        await trio.testing.wait_all_tasks_blocked()

        assert bulk_polls(work) == []
        assert {statement.queue for statement in work.statements} == set(NAMES[:3])
