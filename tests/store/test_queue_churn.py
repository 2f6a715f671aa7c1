"""Queues that are deleted and created again under load: nobody meets an error of the driver, and nothing hangs."""

import random
from collections import Counter

import psycopg
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_helpers import open_quiet_boss, until_blocked

import trioboss
from trioboss.errors import JobNotFound, LeaseLost, QueueBusy, QueueChanged, UnknownQueue
from trioboss.events import ActorRestarted, JobCompleted
from trioboss.testing import record

EXPECTED = (UnknownQueue, QueueChanged, QueueBusy, JobNotFound, LeaseLost)
ROUNDS = 40


async def test_a_send_after_the_queue_was_created_again_with_another_table_succeeds(boss, dsn):
    async with open_quiet_boss(dsn) as other:
        for partition in (True, False, True):
            await other.create_queue("q", partition=partition)
            assert await boss.send("q", partition)
            assert await boss.send("q", partition, priority=1)
            assert len(await boss.fetch("q", batch_size=10)) == 2
            await other.delete_queue("q")
        for _ in range(2):
            with pytest.raises(UnknownQueue):
                await boss.send("q")


@pytest.mark.parametrize(
    "refer",
    [
        lambda boss, **conn: boss.subscribe("event", "q", **conn),
        lambda boss, **conn: boss.schedule("q", "@daily", **conn),
    ],
    ids=["subscribe", "schedule"],
)
async def test_a_reference_to_a_queue_that_is_being_deleted_raises_unknown_queue(boss, dsn, refer):
    await boss.create_queue("q")
    raised = []

    async def wait_for_the_deletion():
        with pytest.raises(UnknownQueue) as error:
            await refer(boss)
        raised.append(error)

    with psycopg.connect(dsn) as deleting, psycopg.connect(dsn, autocommit=True) as watching:
        deleting.execute("select trioboss.delete_queue('q')")
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait_for_the_deletion)
                await until_blocked(watching)
                deleting.commit()
    assert len(raised) == 1


STEPS = (
    "create",
    "create own table",
    "create keyed",
    "delete",
    "send",
    "send with options",
    "insert",
    "fetch",
    "read",
    "conn",
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.booleans(), st.sampled_from(STEPS)), max_size=25))
def test_no_order_of_changes_by_two_bosses_shows_an_error_of_the_driver(dsn, steps):
    """Two bosses, each with its own cache of queues."""
    with trioboss.SyncBoss(dsn, migrate=False) as one, trioboss.SyncBoss(dsn, migrate=False) as two:
        one.delete_queue("q")
        for first, step in steps:
            boss = one if first else two
            try:
                take_step(boss, step)
            except EXPECTED:
                pass
            except trioboss.QueueExists:
                pass


def take_step(boss: trioboss.SyncBoss, step: str) -> None:
    key = {"singleton_key": "k"}
    match step:
        case "create":
            boss.create_queue("q")
        case "create own table":
            boss.create_queue("q", partition=True)
        case "create keyed":
            boss.create_queue("q", policy="singleton")
        case "delete":
            boss.delete_queue("q")
        case "send":
            boss.send("q")
        case "send with options":
            boss.send("q", priority=3, **key)
        case "insert":
            boss.insert("q", [{"data": 1}, {"data": 2, **key}])
        case "fetch":
            boss.complete("q", boss.fetch("q", batch_size=3) or [])
        case "read":
            boss.get_queue_stats("q")
            boss.get_queue_size("q")
            boss.find_jobs("q")
            boss.delete_stored_jobs("q")
        case "conn":
            with boss.transaction() as conn:
                boss.send("q", conn=conn)


async def test_queues_that_come_and_go_under_load_show_only_errors_of_ours(dsn):
    chance = random.Random(1)
    met: Counter[str] = Counter()

    async def churn(boss: trioboss.Boss) -> None:
        for number in range(ROUNDS):
            name = f"q{number % 2}"
            try:
                await boss.delete_queue(name)
                await boss.create_queue(name, partition=chance.random() < 0.5)
            except EXPECTED as error:
                met[type(error).__name__] += 1
        stop.set()

    async def repeat(call) -> None:
        while not stop.is_set():
            try:
                await call(f"q{chance.randrange(2)}")
            except EXPECTED as error:
                met[type(error).__name__] += 1
            await trio.lowlevel.checkpoint()

    async def fetch(name: str) -> None:
        for job in await boss.fetch(name, batch_size=5):
            await boss.complete(name, job)

    async def send_in_transaction(name: str) -> None:
        async with boss.transaction() as conn:
            await boss.send(name, conn=conn)

    async def handler(job: trioboss.Job) -> None:
        pass

    stop = trio.Event()
    with trio.fail_after(120):
        async with (
            trioboss.open_boss(dsn, migrate=False) as boss,
            open_quiet_boss(dsn) as other,
            record(boss.events()) as recorder,
        ):
            await other.create_queue("steady")
            await boss.work("*", handler, concurrency=5)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(churn, other)
                for call in (
                    lambda name: boss.send(name, 1),
                    lambda name: boss.send(name, 1, priority=1),
                    lambda name: boss.insert(name, [{"data": 1}, {"data": 2, "priority": 3}]),
                    lambda name: boss.get_queue_stats(name),
                    fetch,
                    send_in_transaction,
                ):
                    nursery.start_soon(repeat, call)
            id = await boss.send("steady")
            await recorder.wait_for(JobCompleted, lambda event: event.id == id)
            assert not recorder.of(ActorRestarted)


def test_a_boss_without_the_schema_names_what_is_missing(empty_dsn, dsn):
    with trioboss.SyncBoss(dsn, migrate=False) as boss, psycopg.connect(empty_dsn) as elsewhere:
        boss.create_queue("q")
        with pytest.raises(trioboss.StatementFailed, match="does not exist"):
            boss.send("q", conn=elsewhere)


async def test_a_job_whose_send_outlived_its_queue_keeps_no_table_from_being_made(boss, database):
    database.execute("insert into trioboss.live_job (queue, readiness) values ('q', 'ready')")

    await boss.create_queue("q", partition=True)

    assert await boss.send("q", "new") is not None
    assert [job.data for job in await boss.fetch("q", batch_size=9)] == ["new"]
