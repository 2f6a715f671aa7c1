"""No value that a role can write stops maintenance, claims or the jobs beside it."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
import trio
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg import sql
from psycopg.types.json import Jsonb

import trioboss
from trioboss.events import ActorRestarted, JobCompleted, QueueWarning
from trioboss.postgres.blocking import execute_blocking
from trioboss.testing import record, temporary_database

EXAMPLES = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
OPTIONS = (
    *(
        "retry_limit",
        "retry_delay",
        "retry_delay_max",
        "retry_window",
        "retry_jitter",
        "retry_multiplier",
        "expire_in",
        "heartbeat",
    ),
    *("max_lease_extensions", "retention", "delete_after", "retry_backoff", "auto_heartbeat", "dead_letter"),
)

# Numbers as JSON text, because Python has no number like 1e-400, and 1.0 is another text than 1.
numbers = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: f"{value!r}"),
    st.sampled_from(
        ["1e-400", "1e400", "-0.0", "1.0", "6311520000", "6311520000.1", "1e-320", "0.9999999", "1e9"]
    ),
)
json_texts = st.one_of(
    numbers, st.sampled_from(["null", "true", '"text"', "[]", "{}", '"1e400"', '"9999-12-31"'])
)
instants = st.sampled_from(
    [
        "infinity",
        "-infinity",
        "0001-01-01",
        "4713-01-01 BC",
        "294276-12-31",
        "9999-12-31",
        "8999-12-31 23:59",
        "2000-01-01",
    ]
)
intervals = st.sampled_from(
    ["178000000 years", "-1 s", "0", "1 us", "200 years", "-200 years", "1 month", "100 years 1 s"]
)
integers = st.sampled_from([-(2**31), -1, 0, 1, 10**9, 10**9 + 1, 2**30, 2**31 - 2, 2**31 - 1])
floats = st.sampled_from(
    [float("nan"), float("inf"), float("-inf"), -1.0, 0.0, 1e-320, 0.5, 1e9, 6.4e9, 1e300]
)


@pytest.fixture(scope="module")
def poisoned(server_dsn: str, template: str) -> Iterator[tuple[trioboss.SyncBoss, psycopg.Connection[Any]]]:
    """A boss whose queue q all examples share, and a connection for plain SQL."""
    with (
        temporary_database(server_dsn, template) as dsn,
        trioboss.SyncBoss(dsn, migrate=False) as boss,
        psycopg.connect(dsn, autocommit=True) as database,
    ):
        boss.create_queue("letters")
        boss.create_queue("q", dead_letter="letters")
        boss.create_queue("fifo", policy="key_strict_fifo")
        yield boss, database


def maintain(boss: trioboss.SyncBoss) -> None:
    """A round of maintenance, and retention."""
    store = boss._store
    with boss._borrow(boss._idle, {}) as own:
        execute_blocking(own, store.maintenance.rescue_leases(5.0, 1.0, warnings=True), own)
        execute_blocking(own, store.retention.prune(), own)
        execute_blocking(own, store.statistics.count_states(), own)
        execute_blocking(own, store.schedules.read_ticks(), own)


def use(boss: trioboss.SyncBoss, queue: str = "q") -> None:
    """Everything that reads or ends the jobs of a queue; a neighbour goes through whatever the other job is."""
    neighbour = boss.send(queue, "neighbour", priority=-1, singleton_key="neighbour")
    maintain(boss)
    boss.find_jobs(queue)
    jobs = boss.fetch(queue, batch_size=100)
    assert neighbour in [job.id for job in jobs]
    boss.fail(queue, jobs, "broken")
    maintain(boss)
    boss.fetch(queue, batch_size=100, ignore_start_after=True)
    maintain(boss)
    boss.get_queue_stats(queue)
    boss.delete_all_jobs(queue)
    maintain(boss)


def write(database: psycopg.Connection[Any], statement: str, *values: object) -> bool:
    """Write something by plain SQL; whether the database accepted it."""
    with suppress(psycopg.DataError, psycopg.IntegrityError, psycopg.errors.RaiseException):
        database.execute(statement, values)
        return True
    return False


@EXAMPLES
@given(st.dictionaries(st.sampled_from(OPTIONS), json_texts, min_size=1, max_size=3))
@example({"retry_limit": "1.0"})
@example({"retry_delay": "1e-400"})
@example({"expire_in": "0"})
@example({"heartbeat": "0"})
@example({"retry_window": "-1"})
def test_no_options_of_an_inserted_job_stop_maintenance(poisoned, options):
    boss, database = poisoned
    text = "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in options.items()) + "}"
    write(database, "insert into trioboss.live_job (queue, options) values ('q', %s::text::jsonb)", text)
    use(boss)


@EXAMPLES
@given(
    st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("start_after", "created_on", "keep_until"), instants),
            **dict.fromkeys(
                ("retry_window", "expire_in", "heartbeat", "delete_after", "retention"), intervals
            ),
            **dict.fromkeys(("retry_limit", "max_lease_extensions", "priority"), integers),
            **dict.fromkeys(("retry_delay", "retry_delay_max", "retry_jitter"), floats),
        },
    ).filter(bool)
)
def test_no_job_that_is_inserted_through_the_view_stops_maintenance(poisoned, columns):
    boss, database = poisoned
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    insert = sql.SQL("insert into trioboss.job (name, {}) values ('q', {})").format(
        names, sql.SQL(", ").join(sql.Placeholder() * len(columns))
    )
    with suppress(psycopg.DataError, psycopg.IntegrityError):
        database.execute(insert, list(columns.values()))
    use(boss)


@EXAMPLES
@given(
    st.one_of(
        st.tuples(st.sampled_from(["attempt", "retry_count", "extensions", "priority", "rank"]), integers),
        st.tuples(
            st.sampled_from(["started_on", "expires_on", "heartbeat_on", "start_after", "created_on"]),
            instants,
        ),
        st.tuples(st.just("heartbeat"), floats),
    ),
    st.booleans(),
)
@example(("attempt", 2**31 - 1), False)
@example(("heartbeat", float("nan")), True)
@example(("expires_on", "infinity"), True)
def test_no_change_of_a_job_by_plain_sql_stops_maintenance(poisoned, change, active):
    boss, database = poisoned
    column, value = change
    boss.send("q", "changed")
    if active:
        boss.fetch("q")
    update = sql.SQL("update trioboss.live_job set {} = %s").format(sql.Identifier(column))
    with suppress(psycopg.DataError, psycopg.IntegrityError):
        database.execute(update, [value])
    use(boss)


note_values = st.recursive(
    st.one_of(
        st.none(),
        st.integers(-(2**70), 2**70),
        st.sampled_from(["", "tomorrow", "2026-06-31T00:00:00+00:00", "infinity"]),
    ),
    lambda inner: st.dictionaries(
        st.sampled_from(["queue", "id", "created_on", "retry_count"]), inner, max_size=4
    ),
    max_leaves=5,
)


@EXAMPLES
@given(
    st.dictionaries(
        st.sampled_from(["failures", "failed_on", "singleton_on", "source", "error"]), note_values
    )
)
@example({"source": {"queue": "q"}})
@example({"failed_on": "2026-06-31T00:00:00+00:00"})
@example({"failures": 2**31 - 1})
def test_no_notes_of_a_job_stop_maintenance(poisoned, notes):
    boss, database = poisoned
    write(database, "insert into trioboss.live_job (queue, notes) values ('q', %s)", Jsonb(notes))
    use(boss)


@EXAMPLES
@given(
    st.one_of(
        st.tuples(st.sampled_from(["retry_limit", "max_lease_extensions", "warning_queue_size"]), integers),
        st.tuples(
            st.sampled_from(
                [
                    "retry_delay",
                    "retry_delay_max",
                    "retry_jitter",
                    "retry_multiplier",
                    "expire_in",
                    "heartbeat",
                ]
            ),
            floats,
        ),
        st.tuples(st.sampled_from(["retention", "delete_after"]), floats),
        st.tuples(st.sampled_from(["created_on", "updated_on"]), instants),
        st.tuples(
            st.sampled_from(["table_name", "policy", "name", "dead_letter"]),
            st.sampled_from(["q2", "fifo", "stately", "j" + "0" * 32]),
        ),
        st.tuples(st.just("partition"), st.booleans()),
    )
)
@example(("warning_queue_size", 2**31 - 1))
@example(("table_name", "j" + "0" * 32))
@example(("name", "q2"))
def test_no_change_of_a_queue_by_plain_sql_stops_maintenance(poisoned, change):
    boss, database = poisoned
    column, value = change
    (before,) = database.execute("select to_jsonb(q) from trioboss.queue q where name = 'q'").fetchone()
    update = sql.SQL("update trioboss.queue set {} = %s where name = 'q'").format(sql.Identifier(column))
    with suppress(psycopg.DataError, psycopg.IntegrityError):
        database.execute(update, [value])
    maintain(boss)
    assert boss.send("q", "sent") is not None
    boss.get_queues()
    boss.delete_all_jobs("q")
    restore = sql.SQL(
        "update trioboss.queue set {0} = r.{0} from jsonb_populate_record(null::trioboss.queue, %s) r "
        "where queue.name = 'q'"
    )
    database.execute(restore.format(sql.Identifier(column)), [Jsonb(before)])


@pytest.mark.parametrize("column", ["name", "policy", "table_name"])
def test_name_policy_and_table_of_a_queue_cannot_be_changed(poisoned, column):
    _, database = poisoned
    value = {"name": "q2", "policy": "stately", "table_name": "j" + "0" * 32}[column]
    with pytest.raises(psycopg.errors.CheckViolation):
        database.execute(
            sql.SQL("update trioboss.queue set {} = %s where name = 'q'").format(sql.Identifier(column)),
            [value],
        )


# -- where a domain does not hold: data of another version, or a domain that was dropped


@pytest.fixture
def without_domains(database: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    """The database without the checks of options and notes."""
    checks = {
        "job_options": "trioboss.check_job_options(VALUE)",
        "job_notes": "trioboss.check_job_notes(VALUE)",
    }
    for domain in checks:
        database.execute(f"alter domain trioboss.{domain} drop constraint {domain}_check")
    yield database
    database.execute("delete from trioboss.live_job; delete from trioboss.archive")
    for domain, check in checks.items():
        database.execute(f"alter domain trioboss.{domain} add check (value is null or {check})")


POISON = [
    '{"expire_in": "soon"}',
    '{"heartbeat": "never"}',
    '{"retention": "always"}',
    '{"retry_limit": "few"}',
    '{"retry_delay": "1e400"}',
]


@pytest.mark.parametrize("options", POISON)
@pytest.mark.parametrize("policy", ["standard", "singleton", "key_strict_fifo"])
async def test_a_poison_row_is_quarantined_and_the_others_go_on(dsn, without_domains, options, policy):
    done = []

    async def handler(job: trioboss.Job) -> None:
        done.append(job.data)
        if job.data == "poison":
            raise ValueError("broken")

    with trio.fail_after(60):
        async with trioboss.open_boss(dsn, migrate=False) as boss:
            await boss.create_queue("q", policy=policy)
            without_domains.execute(
                "insert into trioboss.live_job (queue, key, options, data) "
                "values ('q', 'k', %s::text::jsonb, to_jsonb(%s::text))",
                [options, "poison"],
            )
            for number in range(3):
                await boss.send("q", number, singleton_key="other")
            async with record(boss.events()) as recorder:
                await boss.work("q", handler, concurrency=5)
                await recorder.wait_for(JobCompleted, count=3)
                await boss._runtime.adapter.prune()
                if "retention" not in options:  # only retention reads that, and it reports to its own caller
                    await recorder.wait_for(QueueWarning, lambda event: event.warning == "quarantined")
                assert not recorder.of(ActorRestarted)
    assert sorted(set(done) - {"poison"}) == [0, 1, 2]
