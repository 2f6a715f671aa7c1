"""The audit of a real history finds nothing, and of that history with one thing changed, that thing."""

from collections import defaultdict
from datetime import timedelta

import attrs
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import MUTATIONS, Copy
from real_history import live, rows_of

from tests.chaos.harness.chaos_run import run as run_chaos
from tests.chaos.harness.plan import QUICK
from trioboss.pipeline.columns import TABLES
from trioboss.pipeline.history import DEAD_LETTERS, DeadLetters, History
from trioboss.pipeline.jobs.audit import _JOBS, find_violations
from trioboss.pipeline.transforms.trace import TRACED_ATTEMPTS, trace_jobs
from trioboss.testing import temporary_database


@pytest.fixture(scope="module")
def real(server_dsn, template):
    """The rows of a history: jobs, and attempts that did not complete."""
    with temporary_database(server_dsn, template) as dsn:
        trio.run(live, dsn, 25)
        return Copy(rows_of(dsn, "archive"), rows_of(dsn, "attempt"))


def to_frame(spark, table, columns, copies):
    """The rows of all copies, each in queues of its own."""
    schema = TABLES[table].schema(columns)
    values = [
        tuple(f"{name}/{row[column]}" if column in ("queue", "source_queue") and row[column] else row[column]
              for column in columns)
        for name, rows in copies.items()
        for row in rows
    ]  # fmt: skip
    return spark.createDataFrame(values, schema, verifySchema=False).coalesce(1)


def find(spark, copies):
    """The findings of each copy: kind, job, whether it is certain."""
    jobs = to_frame(spark, "archive", _JOBS, {name: copy.jobs for name, copy in copies.items()})
    attempts = to_frame(
        spark, "attempt", TRACED_ATTEMPTS, {name: copy.attempts for name, copy in copies.items()}
    )
    trace = trace_jobs(jobs, attempts).persist()
    found = defaultdict(set)
    dead_letters = DeadLetters(jobs.select(*DEAD_LETTERS).where("source_id IS NOT NULL"))
    for row in find_violations(History(jobs, attempts, dead_letters), trace).collect():
        found[row["queue"].partition("/")[0]].add((row["kind"], row["job"], row["certain"]))
    trace.unpersist()
    return found


little = st.integers(1, 1000).map(lambda n: timedelta(microseconds=n))


@settings(max_examples=max(1, settings().max_examples // 100), suppress_health_check=list(HealthCheck))
@given(
    st.tuples(
        *(st.lists(st.tuples(st.integers(0, 10**6), little), min_size=1, max_size=2) for _ in MUTATIONS)
    )
)
def test_every_mutation_is_found_and_the_history_itself_is_clean(spark, real, chosen):
    copies, expected = {"real": Copy.of(real.jobs, real.attempts)}, {}
    for mutate, numbers in zip(MUTATIONS, chosen, strict=True):
        for number, delta in numbers:
            name = f"{mutate.__name__}{len(copies)}"
            copies[name] = Copy.of(real.jobs, real.attempts)
            kind, job, *is_certain = mutate(copies[name], number, delta)
            expected[name] = (kind, job, *(is_certain or [True]))

    found = find(spark, copies)

    assert certain(found["real"]) == set()
    assert {name: finding for name, finding in expected.items() if finding not in found[name]} == {}


def certain(findings):
    return {finding for finding in findings if finding[2]}


@pytest.mark.soak
def test_a_long_busy_history_is_clean(spark, server_dsn, template):
    with temporary_database(server_dsn, template) as dsn:
        trio.run(live, dsn, 600)
        found = find(spark, {"real": Copy(rows_of(dsn, "archive"), rows_of(dsn, "attempt"))})

    assert certain(found["real"]) == set()


@pytest.mark.soak
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_the_history_of_a_chaos_run_is_clean(spark, tmp_path, monkeypatch, seed):
    """Workers are killed and stopped, connections cut, and the server crashes."""

    def collect(folder, dsn, wall_ahead):
        return Copy(rows_of(dsn, "archive"), rows_of(dsn, "attempt"))

    monkeypatch.setattr("tests.chaos.harness.chaos_run.collect", collect)
    plan = attrs.evolve(QUICK, seed=seed)

    found = find(spark, {"real": run_chaos(plan, tmp_path, print, drain_within=300.0)})

    assert certain(found["real"]) == set()
