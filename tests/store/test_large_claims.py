"""A claim brings no more data than a worker can hold, and the next one brings the rest."""

import random

import pytest
import trio

import trioboss

LARGE = 1_000_000  # bytes of a job's data: four of them are a claim


def make_large(number):
    return {"number": number, "text": random.Random(number).randbytes(LARGE // 2).hex()}


@pytest.fixture
async def filled(boss):
    async def fill(policy, **options):
        await boss.create_queue("q", policy=policy)
        jobs = [{"data": make_large(n), "singleton_key": f"k{n}", **options} for n in range(10)]
        await boss.insert("q", jobs)
        return boss

    return fill


@pytest.mark.parametrize("policy", ["standard", "key_strict_fifo"])
@pytest.mark.parametrize(
    ("sent", "fetched"),
    [({}, {}), ({}, {"priority": False}), ({"start_after": 3600}, {"ignore_start_after": True})],
    ids=["by priority", "in order", "early"],
)
async def test_claims_of_large_jobs_bring_a_few_at_a_time_in_their_order(filled, policy, sent, fetched):
    boss = await filled(policy, **sent)
    batches = []
    while jobs := await boss.fetch("q", batch_size=10, **fetched):
        batches.append([job.data["number"] for job in jobs])

    assert [number for batch in batches for number in batch] == list(range(10))
    assert 3 <= len(batches) <= 5


async def test_a_job_that_is_larger_than_a_claim_is_claimed_alone(boss):
    await boss.create_queue("q")
    await boss.insert("q", [{"data": make_large(n)["text"] * 5} for n in range(2)])

    assert [len(await boss.fetch("q", batch_size=10)) for _ in range(3)] == [1, 1, 0]


async def test_a_worker_with_a_large_batch_runs_all_of_them(dsn):
    numbers = []
    done = trio.Event()

    async def handle(jobs):
        numbers.extend(job.data["number"] for job in jobs)
        if len(numbers) == 10:
            done.set()

    async with trioboss.open_boss(dsn) as boss:
        await boss.create_queue("q")
        await boss.insert("q", [{"data": make_large(n)} for n in range(10)])
        await boss.work("q", handle, batch_size=10)
        with trio.fail_after(60):
            await done.wait()

    assert sorted(numbers) == list(range(10))
