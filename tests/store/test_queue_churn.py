"""Queues that are deleted and created again under load: nobody meets an error of the driver, and nothing hangs."""

import random
from collections import Counter
from itertools import count
from typing import Any
from uuid import UUID

import psycopg
import pytest
import trio
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg.pq import TransactionStatus
from store_helpers import open_quiet_boss, until_blocked

import trioboss
from trioboss.errors import JobNotFound, LeaseLost, QueueBusy, QueueChanged, UnknownQueue
from trioboss.events import ActorRestarted, JobCompleted
from trioboss.postgres.blocking import executor as blocking_executor
from trioboss.postgres.blocking.session import run_blocking
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


def fetch_and_end(boss: trioboss.SyncBoss, end: str) -> None:
    if jobs := boss.fetch("q", batch_size=3):
        getattr(boss, end)("q", jobs)


CALLS = {
    "complete": lambda boss: fetch_and_end(boss, "complete"),
    "fail": lambda boss: fetch_and_end(boss, "fail"),
    "fetch in order": lambda boss: boss.fetch("q", priority=False),
    "fetch early": lambda boss: boss.fetch("q", ignore_start_after=True),
    "touch": lambda boss: boss.touch("q", boss.fetch("q") or [UUID(int=1)]),
    "cancel": lambda boss: boss.cancel("q", UUID(int=1)),
    "retry": lambda boss: boss.retry("q", UUID(int=1)),
    "send": lambda boss: boss.send("q", 1, singleton_key="k", id=UUID(int=2)),
    "insert": lambda boss: boss.insert("q", [{"data": 1}, {"data": 2, "priority": 1}]),
    "update": lambda boss: boss.update_job("q", key="k", priority=2),
    "why": lambda boss: boss.why("q", UUID(int=1)),
    "size": lambda boss: boss.get_queue_size("q"),
    "blocked keys": lambda boss: boss.get_blocked_keys("q"),
    "delete stored": lambda boss: boss.delete_stored_jobs("q"),
    "redrive": lambda boss: boss.redrive("q"),
    "publish": lambda boss: boss.publish("event", 1),
}
KINDS = st.sampled_from(
    [{}, {"partition": True}, {"policy": "singleton"}, {"policy": "singleton", "partition": True}]
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(CALLS)),
    KINDS,
    st.dictionaries(st.integers(0, 5), st.one_of(st.none(), KINDS), max_size=3),
)
@example("complete", {}, {0: {"partition": True}, 2: None})
@example("redrive", {"partition": True}, {1: None})
def test_no_change_of_a_queue_in_the_middle_of_a_call_shows_an_error_of_the_driver(
    dsn, monkeypatch, call, kind, changes
):
    """Between the statements of a call the queue is deleted, and perhaps created again, of another kind."""
    with trioboss.SyncBoss(dsn, migrate=False) as boss, trioboss.SyncBoss(dsn, migrate=False) as other:
        other.delete_queue("q")
        other.create_queue("q", **kind)
        other.subscribe("event", "q")
        for id in (1, 2):
            boss.send("q", id, id=UUID(int=id + 8), singleton_key="k")
        monkeypatch.setattr(blocking_executor, "run_blocking", interrupted(boss, other, changes))
        try:
            CALLS[call](boss)
        except (*EXPECTED, trioboss.UsageError):  # the queue it finds may not be of a kind for that call
            pass
        except trioboss.DatabaseUnavailable as error:
            # Not on one queue alone, so it has no second try of its own.
            assert call == "redrive" and "repeat it" in str(error), error  # noqa: PT017, PT018
        finally:
            monkeypatch.undo()


def interrupted(
    boss: trioboss.SyncBoss, other: trioboss.SyncBoss, changes: dict[int, dict[str, Any] | None]
) -> Any:
    """run_blocking with changes of the queue before some of the calls: created again of that kind, or not at all."""
    numbers = count()

    def run(connection: Any, transactions: Any, **options: Any) -> Any:
        number = next(numbers)
        if number in changes and connection.info.transaction_status == TransactionStatus.IDLE:
            monkey = blocking_executor.run_blocking
            blocking_executor.run_blocking = run_blocking
            other.delete_queue("q")
            if (kind := changes[number]) is not None:
                other.create_queue("q", **kind)
            blocking_executor.run_blocking = monkey
        return run_blocking(connection, transactions, **options)

    return run


OWN_TABLE = """select trioboss.create_queue('q', '{"partition": true}')"""


@pytest.mark.parametrize("change", [OWN_TABLE, "select trioboss.delete_queue('q'); " + OWN_TABLE])
async def test_plain_sql_that_waits_while_its_queue_gets_a_table_inserts_there(boss, dsn, database, change):
    if "delete" in change:
        await boss.create_queue("q", partition=True)

    def insert_a_job():
        with psycopg.connect(dsn, autocommit=True) as inserting:
            inserting.execute("insert into trioboss.job (name, data) values ('q', '1')")

    with psycopg.connect(dsn) as creating:
        creating.execute(change)
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.to_thread.run_sync, insert_a_job)
                await until_blocked(database)
                creating.commit()

    assert [job.data for job in await boss.fetch("q", batch_size=9)] == [1]


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
