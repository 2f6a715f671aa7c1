"""Claimed batches: unpacked while the database executes the next claim, and never forgotten."""

from collections.abc import Iterator, Sequence

import attrs
import pytest
import trio
import trio.testing
from scripted_ports import NOON, ScriptedWork, ids, make_job

from trioboss.actors.attempts import ClaimedBatch
from trioboss.model.job import Job
from trioboss.model.settle_and_claim import SettledAndClaimed


@attrs.define(eq=False)
class RecordedBatch(Sequence[Job]):
    """Jobs, and how many statements had been sent when they were read."""

    work: ScriptedWork
    jobs: Sequence[Job]
    read_after: int | None = None

    def __len__(self) -> int:
        return len(self.jobs)

    def __getitem__(self, index):
        return self.jobs[index]

    def __iter__(self) -> Iterator[Job]:
        self.read_after = self.read_after or len(self.work.statements)
        return iter(self.jobs)


class RecordingWork(ScriptedWork):
    """Claims return batches that record when they are read; they are recorded with the number of their statement."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[tuple[int, RecordedBatch]] = []

    async def settle_and_claim(self, *args, **options) -> SettledAndClaimed:
        answer = await super().settle_and_claim(*args, **options)
        if answer.claim is None:
            return answer
        recorded = RecordedBatch(self, answer.claim.jobs)
        self.batches.append((len(self.statements), recorded))
        return attrs.evolve(answer, claim=attrs.evolve(answer.claim, jobs=recorded))


@pytest.fixture
def work() -> ScriptedWork:
    return RecordingWork()


async def do_nothing(job) -> None:
    pass


def leased() -> Job:
    return make_job(state="active", attempt=1, started_on=NOON)


async def test_with_prefetch_the_next_claim_is_sent_before_a_full_batch_is_unpacked(work, open_worker):
    work.send(100)
    async with open_worker(do_nothing, prefetch=10):
        await work.until(lambda: len(work.outcomes) == 100)

    assert any(recorded.read_after > brought for brought, recorded in work.batches)


async def test_without_prefetch_a_batch_is_unpacked_before_the_next_claim(work, open_worker):
    work.send(30)
    async with open_worker(do_nothing, concurrency=3):
        await work.until(lambda: len(work.outcomes) == 30)

    assert all(recorded.read_after in (None, brought) for brought, recorded in work.batches)


async def test_a_batch_that_is_not_full_is_unpacked_at_once(work, open_worker):
    work.send(3)
    async with open_worker(do_nothing, prefetch=10):
        await work.until(lambda: len(work.outcomes) == 3)

    assert work.batches[0][1].read_after == work.batches[0][0]


async def test_jobs_of_a_batch_that_is_not_unpacked_count_as_running(work, open_worker):
    async with open_worker(do_nothing, prefetch=10) as worker:
        await trio.testing.wait_all_tasks_blocked()
        job = leased()
        room = worker.slots.room()
        worker.slots.offer(ClaimedBatch([job], worker.dispatchers["q"].completer, 0.0), more=True)

        assert worker.slots.room() == room - 1
        assert [running.job.id for running in worker.slots.running] == ids([job])


async def test_a_batch_is_unpacked_although_all_slots_are_busy(work, open_worker):
    work.send()

    async def handler(job) -> None:
        await trio.sleep(100)

    async with open_worker(handler, prefetch=10, grace=0) as worker:
        await work.until_running()
        recorded = RecordedBatch(work, [leased()])
        worker.slots.offer(ClaimedBatch(recorded, worker.dispatchers["q"].completer, 0.0), more=True)
        await trio.testing.wait_all_tasks_blocked()

        assert recorded.read_after is not None


async def test_jobs_of_a_batch_that_is_not_unpacked_are_released_when_the_worker_stops(work, open_worker):
    job = leased()
    work.active[job.id] = job

    async def handler(job) -> None:
        await trio.sleep_forever()

    async with open_worker(handler, prefetch=10) as worker:
        worker.slots.offer(ClaimedBatch([job], worker.dispatchers["q"].completer, 0.0), more=True)
        worker.stop(0)
        await worker.stopped.wait()

    assert work.outcomes == [(job.id, 1, "released")]
