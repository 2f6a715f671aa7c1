"""conn= under every isolation level: an operation keeps its promises, or refuses with an error of ours."""

from contextlib import nullcontext, suppress

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg import IsolationLevel
from test_caller_transactions import Changes

import trioboss
from trioboss.model.ids import make_id

LEVELS = [IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE]
OLD = LEVELS[1:]


@pytest.fixture
async def changes(boss):
    made = Changes(boss)
    await made.prepare()
    return made


@pytest.mark.parametrize("level", OLD, ids=lambda level: level.name.lower())
@pytest.mark.parametrize("method", sorted(Changes(None).calls()))
async def test_every_operation_works_in_a_transaction_of_every_level(changes, dsn, level, method):
    with psycopg.connect(dsn) as conn:
        conn.isolation_level = level
        conn.execute("select 1")
        await changes.calls()[method](conn)
        conn.commit()


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name.lower())
@pytest.mark.parametrize("nested", [False, True])
async def test_the_same_id_is_one_job_also_if_the_first_ended_since_the_snapshot(
    boss, dsn, database, level, nested
):
    await boss.create_queue("q")
    ids = [make_id() for _ in range(3)]
    for id in ids:
        await boss.send("q", "first", id=id)
    with psycopg.connect(dsn) as conn:
        conn.isolation_level = level
        conn.execute("select count(*) from trioboss.live_job")  # takes the snapshot
        await boss.complete("q", await boss.fetch("q", batch_size=3))
        with conn.transaction() if nested else nullcontext():
            await boss.send("q", "second", id=ids[0], conn=conn)
            await boss.send_debounced("q", "second", 60, id=ids[1], conn=conn)
            await boss.insert("q", [{"data": "second", "id": ids[2]}, {"data": "new"}], conn=conn)
        conn.commit()
    assert [job.data for job in await boss.fetch("q", batch_size=10)] == ["new"]


@pytest.mark.parametrize("level", OLD, ids=lambda level: level.name.lower())
async def test_a_job_for_a_queue_that_was_created_again_with_another_policy_is_refused(boss, dsn, level):
    await boss.create_queue("q")
    with psycopg.connect(dsn) as conn:
        conn.isolation_level = level
        conn.execute("select count(*) from trioboss.queue")
        await boss.delete_queue("q")
        await boss.create_queue("q", policy="singleton")
        with pytest.raises(trioboss.DatabaseUnavailable):
            await boss.send("q", singleton_key="k", conn=conn)


EVENTS = ("send id", "end", "send once", "send throttled", "fetch", "send short", "cancel", "recreate")
CALLS = ("send id", "send once", "send throttled", "send short", "fetch", "insert", "complete", "cancel")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(LEVELS),
    st.lists(st.sampled_from(EVENTS), max_size=4),
    st.sampled_from(EVENTS),
    st.sampled_from(CALLS),
)
@example(IsolationLevel.REPEATABLE_READ, ["send id"], "end", "send id")
@example(IsolationLevel.REPEATABLE_READ, [], "send short", "send short")
def test_no_event_beside_a_callers_transaction_breaks_a_promise(dsn, database, level, before, beside, call):
    id = make_id()
    with trioboss.SyncBoss(dsn, migrate=False) as boss, psycopg.connect(dsn) as conn:
        recreate(boss, "standard")
        for event in before:
            act(boss, event, id)
        conn.isolation_level = level
        conn.execute("select count(*) from trioboss.live_job")
        act(boss, beside, id)
        with suppress(trioboss.TriobossError):
            act(boss, call, id, conn)
            conn.commit()
        conn.rollback()
    rows = database.execute("select count(*) from trioboss.all_jobs where id = %s", [id]).fetchone()
    assert rows[0] <= 1
    for condition in ("data = '\"once\"' and live", "name = 'short' and state = 'created'"):
        ((count,),) = database.execute(f"select count(*) from trioboss.all_jobs where {condition}").fetchall()
        assert count <= 1
    ((count,),) = database.execute(
        "select count(*) from trioboss.all_jobs where singleton_on is not null"
    ).fetchall()
    assert count <= 1


def recreate(boss: trioboss.SyncBoss, policy: str) -> None:
    for name in ("q", "short"):
        with suppress(trioboss.TriobossError):
            boss.delete_all_jobs(name)
        boss.delete_queue(name)
    boss.create_queue("q", policy=policy)
    boss.create_queue("short", policy="short")


def act(boss: trioboss.SyncBoss, step: str, id: object, conn: object = None) -> None:
    match step:
        case "send id":
            boss.send("q", "id", id=id, conn=conn)
        case "send once":
            boss.send_once("q", "once", "k", conn=conn)
        case "send throttled":
            boss.send_throttled("q", "throttled", 86400, conn=conn)
        case "send short":
            boss.send("short", "short", conn=conn)
        case "insert":
            boss.insert("q", [{"data": "id", "id": id}], conn=conn)
        case "fetch":
            boss.fetch("q", batch_size=10, conn=conn)
        case "complete" | "end":
            with suppress(trioboss.JobNotFound, trioboss.LeaseLost):
                boss.complete("q", boss.fetch("q", batch_size=10, conn=conn), conn=conn)
        case "cancel":
            with suppress(trioboss.JobNotFound):
                boss.cancel("q", id, conn=conn)
        case "recreate":
            recreate(boss, "standard")
