"""Dead letters: the command `redrive`, and a redrive in a caller's transaction."""

import json

import psycopg
import pytest
from worker_helpers import fail_all

import trioboss


@pytest.fixture
def buried(sync_boss):
    """Two queues with a dead letter queue that has one job of each."""
    sync_boss.create_queue("graves")
    for name in ("a", "b"):
        sync_boss.create_queue(name, retry_limit=0, dead_letter="graves")
        sync_boss.send(name, name, priority=4, singleton_key=f"key {name}")
        fail_all(sync_boss, name)


def test_redrive_sends_jobs_back_to_where_they_failed(run, sync_boss, buried):
    code, printed, _ = run("redrive", "graves", "--dry-run")
    assert (code, printed) == (0, "1 job would be sent to 'a'\n1 job would be sent to 'b'\n")
    assert run("redrive", "graves")[0] == 2
    assert sync_boss.get_queue_size("graves") == 2

    code, printed, _ = run("redrive", "graves", "--yes")
    assert (code, printed) == (0, "1 job sent to 'a'\n1 job sent to 'b'\n")
    assert sync_boss.get_queue_size("graves") == 0
    (job,) = sync_boss.fetch("a")
    assert (job.data, job.priority, job.singleton_key, job.retry_limit) == ("a", 4, "key a", 0)
    assert run("redrive", "graves", "--yes")[0] == 1


def test_redrive_of_some_and_elsewhere(run, sync_boss, buried):
    sync_boss.create_queue("elsewhere")

    assert json.loads(
        run("redrive", "graves", "--source", "a", "--to", "elsewhere", "--yes", "--json")[1]
    ) == {
        "moved": 1,
        "destinations": {"elsewhere": 1},
        "unroutable": 0,
        "duplicates": 0,
        "refused": 0,
    }
    assert run("redrive", "graves", "--limit", "1", "--dry-run")[1] == "1 job would be sent to 'b'\n"


def test_redrive_leaves_jobs_that_no_queue_takes(run, sync_boss, buried):
    sync_boss.delete_queue("a")
    sync_boss.create_queue("once", policy="exclusive")
    sync_boss.send("once", singleton_key="key b")

    code, printed, _ = run("redrive", "graves", "--dry-run")
    assert (code, "1 job stays: the queue is gone" in printed) == (0, True)
    redriven = sync_boss.redrive("graves", source="b", to="once")
    assert (redriven.moved, redriven.refused) == (0, 1)
    assert sync_boss.redrive("graves") == trioboss.Redriven(1, {"b": 1}, 1, 0)
    assert sync_boss.get_queue_size("graves") == 1


def test_redrive_refuses_a_source_that_neither_exists_nor_has_jobs(run, sync_boss, buried):
    with pytest.raises(trioboss.UnknownQueue, match="queue 'misspelt' does not exist"):
        sync_boss.redrive("graves", source="misspelt")
    with pytest.raises(trioboss.UnknownQueue, match="queue 'misspelt' does not exist"):
        sync_boss.redrive("graves", to="b", source="misspelt", dry_run=True)
    assert "queue 'misspelt' does not exist" in run("redrive", "graves", "--source", "misspelt", "--yes")[2]

    sync_boss.delete_queue("a")
    assert sync_boss.redrive("graves", source="a", to="b").moved == 1
    sync_boss.redrive("graves", source="b")
    assert sync_boss.redrive("graves", source="b").moved == 0


async def test_redrive_of_a_boss_in_the_callers_transaction(boss, dsn):
    await boss.create_queue("graves2")
    await boss.create_queue("c", retry_limit=0, dead_letter="graves2")
    await boss.send("c")
    (job,) = await boss.fetch("c")
    await boss.fail("c", job)

    async with boss.transaction() as conn:
        assert (await boss.redrive("graves2", conn=conn)).moved == 1
        with psycopg.connect(dsn) as other:
            assert other.execute("select count(*) from trioboss.live_job where queue = 'c'").fetchone() == (
                0,
            )
    assert await boss.get_queue_size("c") == 1
