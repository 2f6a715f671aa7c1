"""Which values a role may write: whatever a producer inserts, policies hold, and maintenance goes on."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg import sql
from psycopg.types.json import Jsonb
from security_helpers import as_role, granted_database

import trioboss
from trioboss import Policy
from trioboss.postgres.blocking import execute_blocking

EXAMPLES = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def hostile(server_dsn: str, template: str, roles: None) -> Iterator[tuple[Any, Any, Any]]:
    """A boss of the admin with a queue of each policy, a connection of the producer, and one of the owner."""
    with (
        granted_database(server_dsn, template) as dsn,
        trioboss.SyncBoss(dsn, migrate=False) as boss,
        psycopg.connect(as_role(dsn, "producer"), autocommit=True) as producer,
        psycopg.connect(dsn, autocommit=True) as owner,
    ):
        for policy in Policy:
            boss.create_queue(policy.value, policy=policy)
            boss.create_queue(f"{policy.value}/own", policy=policy, partition=True)
        yield boss, producer, owner


keys = st.sampled_from([None, "", "a", "b", "key:a", "x" * 1001])
texts = st.sampled_from(
    [None, "", "key:a", "key:b", "any:a", "created:a", "retry:a", "started:a", "ended:a", "junk"]
)
columns = st.fixed_dictionaries(
    {},
    optional={
        "readiness": st.sampled_from(["deferred", "blocked", "waiting", "ready", "active", "ended"]),
        "backlog": texts,
        "slot": texts,
        "unique_key": texts,
        "rank": st.sampled_from([-(2**31), 0, 2**31 - 1]),
        "priority": st.sampled_from([-(2**31), 0, 2**31 - 1]),
        "start_after": st.sampled_from(["2000-01-01", "2100-01-01", "infinity"]),
        "notes": st.sampled_from(
            [
                {},
                {"source": {}},
                {"source": {"queue": "q"}},
                {"failures": -1},
                {"singleton_on": "x"},
                {"error": 1},
            ]
        ).map(Jsonb),
        "options": st.sampled_from([{}, {"retry_limit": 5}, {"retry_limit": -1}, {"dead_letter": "x"}]).map(
            Jsonb
        ),
    },
)
jobs = st.lists(
    st.tuples(st.sampled_from(list(Policy)), st.booleans(), keys, columns), min_size=1, max_size=6
)


@EXAMPLES
@given(jobs)
@example([(Policy.SINGLETON, False, "a", {"readiness": "ready"})] * 3)
@example([(Policy.SHORT, False, "a", {"readiness": "ready", "slot": None})] * 3)
@example([(Policy.EXCLUSIVE, True, "a", {"readiness": "active", "slot": None})] * 3)
@example([(Policy.KEY_STRICT_FIFO, True, "a", {"readiness": "ready", "backlog": None})] * 3)
@example([(Policy.STANDARD, False, "a", {"notes": Jsonb({"source": {}})})])
def test_a_producer_cannot_pass_a_policy_by(hostile, jobs):
    boss, producer, owner = hostile
    for policy, own_table, key, values in jobs:
        queue = f"{policy.value}/own" if own_table else policy.value
        row = {"queue": queue, "key": key, **values}
        insert = sql.SQL("insert into trioboss.live_job ({}) values ({})").format(
            sql.SQL(", ").join(map(sql.Identifier, row)), sql.SQL(", ").join(sql.Placeholder() * len(row))
        )
        with suppress(psycopg.DataError, psycopg.IntegrityError):
            producer.execute(insert, list(row.values()))
    for policy in Policy:
        for queue in (policy.value, f"{policy.value}/own"):
            check_queued(owner, queue, policy)
            claimed = boss.fetch(queue, batch_size=100)
            if policy.is_keyed or policy is Policy.EXCLUSIVE:
                assert len({job.singleton_key for job in claimed}) == len(claimed)
            boss.complete(queue, claimed)
    with boss._borrow(boss._idle, {}) as own:
        execute_blocking(own, boss._store.maintenance.rescue_leases(5.0, 1.0, warnings=True), own)
        execute_blocking(own, boss._store.retention.prune(), own)
    for policy in Policy:
        boss.delete_all_jobs(policy.value)
        boss.delete_all_jobs(f"{policy.value}/own")


def check_queued(owner: psycopg.Connection[Any], queue: str, policy: Policy) -> None:
    """The invariants of a queue's rows, for every role that wrote them."""
    rows = owner.execute(
        "select readiness, key, slot, owner, notes from trioboss.live_job where queue = %s", [queue]
    )
    created = []
    for readiness, key, _, owned, notes in rows.fetchall():
        assert readiness in ("deferred", "waiting" if policy.is_keyed else "ready")
        assert owned is None
        assert notes is None or set(notes) == {"singleton_on"}
        created.append(key)
    if policy in (Policy.SHORT, Policy.STATELY, Policy.EXCLUSIVE):
        assert len(created) == len(set(created))


@pytest.mark.parametrize(
    "statement",
    [
        "select * from trioboss.throttle",
        "delete from trioboss.throttle",
        "insert into trioboss.throttle values ('q', 'k', now(), now(), gen_random_uuid())",
        "select backlog from trioboss.live_job",
        "select key from trioboss.live_job",
        "select seq from trioboss.backlog_check",
        "delete from trioboss.backlog_check",
        "insert into trioboss.live_job (queue, readiness, seq) values ('standard', 'ready', -1)",
        "insert into trioboss.live_job (queue, readiness, owner) values ('standard', 'ready', 'x')",
        "insert into trioboss.live_job (queue, readiness, attempt) values ('standard', 'ready', 7)",
    ],
)
def test_a_producer_reads_no_keys_and_no_slots(hostile, statement):
    _, producer, _ = hostile
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        producer.execute(statement)


def test_a_producer_sends_no_job_in_the_future(hostile):
    boss, producer, _ = hostile
    producer.execute("insert into trioboss.live_job (queue, created_on) values ('standard', '8999-12-30Z')")

    (job,) = boss.fetch("standard")

    assert job.created_on < job.started_on
    boss.complete("standard", job)


def test_a_producer_can_return_no_slot_but_that_of_a_job_that_was_refused(hostile):
    boss, producer, owner = hostile
    id = boss.send_throttled("standard", 1, 86400, "k")
    ended = boss.send_throttled("standard", 1, 86400, "ended")
    boss.complete("standard", boss.fetch("standard", batch_size=9))
    live = boss.send_throttled("standard", 1, 86400, "live")
    slots = owner.execute("select slot, job_id from trioboss.throttle").fetchall()
    assert {job for _, job in slots} == {id, ended, live}
    for slot, job in slots:
        producer.execute("select trioboss.return_throttle_slot('standard', %s, %s)", [slot, job])
    assert owner.execute("select slot, job_id from trioboss.throttle").fetchall() == slots
    boss.delete_all_jobs("standard")
    owner.execute("delete from trioboss.throttle")


def test_the_numbers_of_locks_depend_on_a_seed_that_strangers_cannot_read(hostile):
    """A lock whose number is known before anybody holds it can be taken by any role that may connect."""
    _, _, owner = hostile
    numbers = owner.execute(
        "select trioboss.lock_number('admission/q', seed), trioboss.key_lock('q', 'k', seed) "
        "from generate_series(1, 50) seed"
    ).fetchall()
    granted = owner.execute(
        "select grantee from information_schema.role_table_grants "
        "where table_schema = 'trioboss' and table_name = 'lock_seed' and grantee = 'PUBLIC'"
    ).fetchall()

    assert len({number for pair in numbers for number in pair}) == 100
    assert granted == []


@pytest.mark.parametrize("function", ["drop_sent", "drop_if_ended"])
def test_a_producer_can_drop_no_job_of_another_transaction(hostile, function):
    boss, producer, owner = hostile
    id = boss.send("standard", "kept", retry_limit=0)
    boss.fail("standard", boss.fetch("standard"), "an error")
    # In the archive for the function that began before, and live again by an operator meanwhile.
    owner.execute("insert into trioboss.live_job (queue, id) values ('standard', %s)", [id])
    dropped = producer.execute(f"select trioboss.{function}('standard', %s)", [[id]])
    assert dropped.fetchall() == []
    assert owner.execute("select id from trioboss.live_job where queue = 'standard'").fetchall() == [(id,)]
    boss.delete_all_jobs("standard")


check_values = st.fixed_dictionaries(
    {"queue": st.sampled_from([*Policy, "nowhere"]).map(str), "backlog": texts.filter(bool)},
    optional={
        "seq": st.sampled_from([-(2**63), 0, 2**63 - 1]),
        "priority": st.sampled_from([None, -(2**31), 0, 2**31 - 1]),
    },
)


@EXAMPLES
@given(st.lists(check_values, min_size=1, max_size=5))
def test_no_check_of_a_backlog_stops_a_claim(hostile, rows):
    boss, producer, owner = hostile
    for row in rows:
        insert = sql.SQL("insert into trioboss.backlog_check ({}) values ({})").format(
            sql.SQL(", ").join(map(sql.Identifier, row)), sql.SQL(", ").join(sql.Placeholder() * len(row))
        )
        producer.execute(insert, list(row.values()))
    for policy in Policy:
        boss.send(policy.value, 1, singleton_key="mine")
        (job,) = boss.fetch(policy.value, batch_size=9)
        boss.complete(policy.value, job)
    with boss._borrow(boss._idle, {}) as own:
        execute_blocking(own, boss._store.retention.prune(), own)
    left = owner.execute("select distinct queue from trioboss.backlog_check").fetchall()
    # Those of queues that have keys stay until a claim reads them.
    assert {queue for (queue,) in left}.isdisjoint(
        {"nowhere", *(each.value for each in Policy if not each.is_keyed)}
    )
    owner.execute("delete from trioboss.backlog_check")
