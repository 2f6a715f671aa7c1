"""send and its relatives."""

import pytest

import trioboss


async def test_a_job_comes_back_as_it_was_sent(boss):
    await boss.create_queue("email")

    id = await boss.send("email", {"to": ["a", "b"], "cost": 1e16, "deep": {"null": None}})
    (job,) = await boss.fetch("email")

    assert job.id == id
    assert job.data == {"to": ["a", "b"], "cost": 1e16, "deep": {"null": None}}
    assert isinstance(job.data["cost"], float)


async def test_sending_to_a_queue_that_does_not_exist_names_it(boss):
    with pytest.raises(trioboss.UnknownQueue, match="'nowhere'"):
        await boss.send("nowhere")


async def test_the_same_id_twice_is_one_job(boss):
    await boss.create_queue("email")
    id = await boss.send("email", 1)
    await boss.complete("email", await boss.fetch("email"))

    assert await boss.send("email", 2, id=id) == id
    assert await boss.fetch("email") == []
