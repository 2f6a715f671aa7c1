"""The statements of the pages read what they show, however many jobs there are: large tables, and the plans on them.

The tables have a twenty-fifth of the rows for which the time is promised, and the limits of the pages are smaller in
the same proportion: a statement that walks over a whole queue reads more than it may, at any size.
TRIOBOSS_PAGE_ROWS=1000000 takes more than a million live jobs and five million archived ones, and also checks that all
statements of a page together take no more than 200 ms of CPU; TRIOBOSS_PAGE_TIMES=FILE then writes what each page
takes, for docs/benchmarks.md.
"""

import os
import time
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from page_tables import (
    AGES,
    BUDGET,
    COUNT,
    ERRORS,
    LOAD,
    NOTES,
    OVERVIEW,
    SCALE,
    SCHEDULES,
    SOME,
    WORKERS,
)
from psycopg import sql

from trioboss.dashboard import confirming, pages, queries
from trioboss.dashboard.changes import JOB_ACTIONS
from trioboss.postgres.settings import OWN_SETTINGS, SESSION_SETTINGS
from trioboss.postgres.wire.binary import BinaryParameter
from trioboss.sql import COMMON_TABLE, Catalog
from trioboss.store import Context
from trioboss.testing import temporary_database

pytestmark = pytest.mark.xdist_group("page plans")  # to fill the tables takes longer than all these tests

ANY = {"low": UUID(int=0), "high": UUID(int=2**128 - 1), "budget": BUDGET, "bytes": NOTES, "limit": 50}
ALL = {**ANY, "limit": COUNT}  # the page that asks before an action counts with the statements of a list
ENDED = "SELECT id FROM trioboss.archive WHERE queue = 'ended' AND outcome = 'failed' ORDER BY id LIMIT 1"
NEWEST = "SELECT array_agg(id) FROM (SELECT id FROM trioboss.live_job WHERE queue = 'retry' LIMIT 50) j"
KEYS = {"queue": "keys", "limit": 51, "most": OVERVIEW}
FIRST = "SELECT id FROM trioboss.live_job WHERE queue = 'ready' ORDER BY id LIMIT 1"
THEN = {"committed": "1000000000:1000000000:", "counted_on": "0 s"}  # as the page that asks before an action
# The jobs of each queue; of those that have ended only the failed ones, which have an index of their own.
ROWS = """
    SELECT queue, count(*) FROM trioboss.live_job GROUP BY 1
    UNION ALL
    SELECT queue, count(*) FROM trioboss.archive WHERE outcome = 'failed' GROUP BY 1
"""
# Each statement with its parameters, and how many rows of the tables of jobs it may read.
CASES = [
    ("show_queues", {"limit": 101, "most": OVERVIEW}, 101 * (OVERVIEW + 5) + AGES + 5_000),
    ("show_queues", {"limit": 100, "most": COUNT, "queue": "keys"}, COUNT + 2 * SOME),
    ("show_rates", {"queues": ["ready", "later", "keys"], "since": "1 hour"}, 400),
    ("get_samples", {"queue": "ready", "since": "1 hour", "until": "0 s"}, 100),
    ("get_samples", {"queue": "ready", "since": "1 day", "until": "0 s"}, 1_500),
    ("show_errors", {"queue": "ended"}, 1_100),
    ("show_errors", {"queue": "keys"}, 1_100),
    ("show_slowest", {"queue": "ended", "limit": 6}, 1_300),
    ("show_keys", KEYS, 51 * OVERVIEW + 3_000),
    ("show_keys", {**KEYS, "after": "key:k5"}, 51 * OVERVIEW + 3_000),
    ("show_keys", {**KEYS, "after_blocked": "key:k5"}, 51 * OVERVIEW + 3_000),
    ("show_backlog", {"queue": "keys", "key": "k7", "limit": 100}, 150),
    ("show_backlog_size", {"queue": "keys", "key": "k7", "most": COUNT}, COUNT),
    ("show_live_jobs", {**ANY, "queue": "ready"}, BUDGET + SOME),
    ("show_live_jobs", {**ANY, "queue": "ready", "state": "active"}, 600),
    ("show_live_jobs", {**ANY, "queue": "keys", "state": "failed"}, BUDGET + SOME),
    ("show_live_jobs", {**ANY, "queue": "ready", "state": "failed"}, SOME),
    ("show_live_jobs", {**ALL, "queue": "ready", "within": "failed"}, SOME),
    ("show_live_jobs", {**ANY, "queue": "retry", "state": "retry"}, BUDGET + SOME),
    (
        "show_live_jobs",
        {**ANY, "queue": "retry", "error": "nothing"},
        BUDGET + 1_000,
    ),  # and the notes of many
    ("show_live_jobs", {**ALL, "queue": "ready", "within": "unfinished", "until": "0 s"}, BUDGET + SOME),
    (
        "show_live_jobs",
        {**ALL, **THEN, "queue": "ready", "within": "unfinished", "until": "0 s"},
        BUDGET + SOME,
    ),
    ("show_ended_jobs", {**ALL, "queue": "ended", "until": "0 s"}, BUDGET + SOME),
    ("show_ended_jobs", {**ALL, "queue": "ended", "within": "failed", "outcome": "failed"}, BUDGET + SOME),
    (
        "show_ended_jobs",
        {**ALL, **THEN, "queue": "ended", "within": "failed", "outcome": "failed"},
        BUDGET + SOME,
    ),
    ("show_ended_jobs", {**ANY, "queue": "ended"}, BUDGET + SOME),
    ("show_ended_jobs", {**ANY, "queue": "ended", "state": "failed", "outcome": "failed"}, BUDGET + SOME),
    ("show_ended_jobs", {**ANY, "queue": "ended", "error": "E0", "since": "1 day"}, BUDGET + SOME),
    ("show_ended_jobs", {**ALL, "queue": "ended", "since": "1 day"}, BUDGET + SOME),
    ("show_ended_jobs", {**ALL, "queue": "ended", "since": "3 days", "until": "2 days"}, BUDGET + SOME),
    ("show_ended_jobs", {**ALL, "queue": "ended", "since": "1 s"}, BUDGET + SOME),
    ("show_ended_jobs", {**ANY, "queue": "ended", "digits": "0123456789ab"}, BUDGET + SOME),
    ("show_live_jobs", {**ANY, "queue": "ready", "digits": "0123456789ab"}, BUDGET + SOME),
    ("show_ended_jobs", {**ANY, "queue": "ended", "error": "nothing"}, 20),
    ("show_excerpts", {"queue": "retry", "ids": NEWEST, "bytes": 2_000}, 100),
    ("show_attempts", {"queue": "ended", "id": ENDED, "limit": 100}, 10),
    ("show_job", {"queue": "ended", "id": ENDED}, 10),
    ("get_end", {"queue": "ended", "id": ENDED}, 10),
    (
        "explain_job",
        {"queue": "ready", "id": FIRST},
        10_001 + WORKERS + 600,
    ),  # jobs before it, and all workers
    ("show_dead_letter", {"queue": "dead", "id": ENDED, "ended_on": "1 hour"}, 100),
    (
        "show_workers",
        {"limit": 101, "most": COUNT},
        500 + 2 * WORKERS,
    ),  # all leases, and all workers to sort them
    ("show_worker_count", {"most": COUNT}, 500 + WORKERS),
    (
        "show_schedules",
        {"limit": 51, "ticks": 20},
        51 + 51 * 20 + SCHEDULES,
    ),  # and all schedules to search them
    ("show_schedules", {"queue": "ready", "key": "k1", "limit": 1, "ticks": 100}, 110),
    ("show_audit", {"high": ANY["high"], "limit": 100}, 200),
    ("show_pipeline", {"limit": 50}, 200),  # the first row of each day for each lake
    ("show_history_audits", {"limit": 50}, 10),
    ("show_events", {"limit": 100}, 6 * SCHEDULES + 2 * WORKERS + 1_000),  # five ticks of each schedule
    ("show_events", {"limit": 100, "kind": "job"}, 150),
    ("get_warnings", {"limit": 200}, 300),
    ("get_warnings", {"limit": 5, "queue": "dead"}, 5_100),  # all of a week: the table is small
    ("preview_redrive", {"queue": "dead", "limit": COUNT, "bytes": ERRORS}, COUNT + SOME),
    ("read_clock", {}, 0),
    ("show_committed", {}, 0),
    ("get_queues", {"queue": "ready"}, 200),
    ("show_payload", {"queue": "ended", "id": ENDED, "most": 1_048_576}, 10),
    ("show_queue_of_job", {"id": ENDED}, 200),
]


@pytest.fixture(scope="module")
def large(server_dsn, template):
    with temporary_database(server_dsn, template) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(LOAD.format(rows=SCALE).encode())
        connection.execute("VACUUM ANALYZE")
        for name, value in ({s.name: s.value for s in SESSION_SETTINGS} | OWN_SETTINGS).items():
            connection.execute("SELECT set_config(%s, %s, false)", [name, value])
        yield connection
        if "TRIOBOSS_PAGE_TIMES" in os.environ:
            Path(os.environ["TRIOBOSS_PAGE_TIMES"]).write_text(table_of_times())


def table_of_times():
    """The cost of each page, for the documentation."""
    lines = ["| page | statements | ms | of these the most expensive one |", "|---|---:|---:|---|"]
    for path, spent in TIMES.items():
        most, name = max(spent)
        total = sum(each for each, _ in spent)
        lines.append(f"| `{path}` | {len(spent)} | {1000 * total:.1f} | `{name}` {1000 * most:.1f} |")
    return "\n".join(lines) + "\n"


def parameter(connection, name, value):
    """A time is given as how long ago, an id as a query."""
    if name in ("since", "until", "ended_on", "counted_on") and isinstance(value, str):
        return connection.execute("SELECT now() - %s::interval", [value]).fetchone()[0]
    if isinstance(value, str) and value.startswith("SELECT"):
        return connection.execute(value.encode()).fetchone()[0]
    return value


def literal(value):
    """Ids are sent as a binary array: a header of 20 bytes, then the length and the 16 bytes of each."""
    if isinstance(value, BinaryParameter):
        value = [UUID(bytes=value[start + 4 : start + 20]) for start in range(20, len(value), 20)]
    return sql.Literal(value)


def prepare(connection, name, values):
    """The command that executes a statement with these values."""
    statement = Catalog("trioboss").get(name)
    given = [
        parameter(connection, each, values.get(each)) if values.get(each) is not None else None
        for each in statement.parameters
    ]
    prepared = sql.Identifier(f"{name} {len(values)} {time.monotonic_ns()}")
    connection.execute(sql.SQL("PREPARE {} AS {}").format(prepared, sql.SQL(statement.text)))
    call = sql.SQL("EXECUTE {}").format(prepared)
    if given:
        call += sql.SQL(" ({})").format(sql.SQL(", ").join(map(literal, given)))
    return call


def plan_of(connection, name, values):
    explain = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {}").format(prepare(connection, name, values))
    ((plan,),) = connection.execute(explain).fetchall()
    return plan[0]


def cpu_of(pid):
    """CPU seconds of a process: the clock would measure what else the machine does."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def time_of(connection, name, values):
    """CPU seconds that the server needs for a statement, planning included: the least of three times."""
    call, spent = prepare(connection, name, values), []
    for _ in range(3):
        begun = cpu_of(connection.info.backend_pid)
        connection.execute(call).fetchall()
        spent.append(cpu_of(connection.info.backend_pid) - begun)
    return min(spent)


def rows_read(node):
    """Rows that were read of tables of jobs, matching or not."""
    own = 0.0
    if "Relation Name" in node:
        discarded = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        own = (node["Actual Rows"] + discarded) * node["Actual Loops"]
    return own + sum(rows_read(child) for child in node.get("Plans", ()))


@pytest.mark.parametrize(
    ("name", "values", "most"),
    [case for case in CASES if case[0].endswith(("_jobs", "_redrive", "_keys", "_queues"))],
)
def test_a_walk_over_the_queue_would_be_noticed(large, name, values, most):
    """A statement may read less than there is."""
    rows = {row[0]: row[1] for row in large.execute(ROWS).fetchall()}
    there = rows[values["queue"]] if "queue" in values else sum(rows.values())

    assert most < there


@pytest.mark.parametrize(
    ("name", "values", "most"), CASES, ids=[f"{case[0]} {case[1].get('queue', '')}" for case in CASES]
)
def test_a_page_reads_no_more_than_it_shows(large, name, values, most):
    assert rows_read(plan_of(large, name, values)["Plan"]) <= most


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("show_live_jobs", {"queue": "retry", "state": "retry"}),
        ("show_live_jobs", {"queue": "retry", "within": "queued", "until": "0 s", "limit": 10_001}),
        ("show_live_jobs", {"queue": "dead"}),
        ("show_ended_jobs", {"queue": "ended", "state": "failed", "outcome": "failed"}),
        ("show_ended_jobs", {"queue": "ended", "error": "E0"}),
    ],
    ids=["retries", "all retries", "dead letters", "failed", "error"],
)
def test_a_search_reads_no_stacks(large, name, values):
    """They are stored outside of their rows: each one takes three blocks or more."""
    found = plan_of(large, name, {**ANY, **values})["Plan"]

    assert found["Shared Hit Blocks"] + found["Shared Read Blocks"] <= SCALE / 16


# -- what the pages really execute

PATHS = [
    *("/", "/?text=many", "/queues/ready", "/queues/ended?span=24h", "/queues/keys", "/queues/dead"),
    *(
        "/queues/ready/jobs",
        "/queues/ready/jobs?state=active",
        "/queues/keys/jobs?state=failed&error=E7",
    ),
    *("/queues/retry/jobs", "/queues/retry/jobs?state=retry", "/queues/retry/jobs?error=E7"),
    *("/queues/retry/jobs?error=nothing&since=1d", "/queues/retry/confirm?action=run-now&error=nothing"),
    *(
        "/queues/retry",
        "/queues/dead/jobs",
        "/queues/ended/jobs?state=failed",
        "/queues/ended/jobs?error=nothing",
    ),
    *("/queues/ended/jobs?state=failed&error=E0&since=1d", "/queues/ended/jobs?text=0123456789ab"),
    *("/queues/keys/keys", "/queues/keys/keys?after=key:k5", "/queues/keys/key?key=k7"),
    *("/queues/dead/redrive", "/queues/dead/redrive?source=ended"),
    *("/schedules", "/schedules?text=k7&after=ready&after_key=k2", "/queues/ready/schedule?key=k1"),
    *("/workers", f"/workers?after=w2&after_queue=ready&after_id={UUID(int=0)}"),
    *("/events", "/events?kind=job", "/pipeline", "/audit"),
    *("/queues/ended/confirm?action=delete&key=nobody", "/queues/ready/confirm?action=cancel&key=nobody"),
    *(f"/queues/ready/confirm?action={action}" for action in JOB_ACTIONS),
    *(f"/queues/ended/confirm?action={action}" for action in JOB_ACTIONS),
    "/queues/ended/jobs/{ended}",
    "/?text={ended}",
]
# Of the first use of a connection, and of every transaction: they read no jobs.
OF_CONNECTIONS = {"limit_transaction", "show_rights", "is_installed", "get_version", "get_compatible"}
LIMITS = [
    *((queries, "BUDGET", BUDGET), (queries, "COUNT_LIMIT", COUNT), (confirming, "COUNT_LIMIT", COUNT)),
    *((pages, "OVERVIEW_LIMIT", OVERVIEW), (queries, "_KEY_COUNT", OVERVIEW)),
    *((queries, "_NOTES", NOTES), (queries, "_ERRORS", ERRORS)),
]
OPENED: set[str] = set()
EXECUTED: set[str] = set()
TIMES: dict[str, list[tuple[float, str]]] = {}


@pytest.fixture
def executed(monkeypatch):
    """The statements that are executed, with their parameters."""
    found = []
    bind = Context.bind

    def record(self, name, table=COMMON_TABLE, /, **values):
        found.append((name, values))
        return bind(self, name, table, **values)

    monkeypatch.setattr(Context, "bind", record)
    for module, name, limit in LIMITS:
        monkeypatch.setattr(module, name, limit)
    return found


@pytest.mark.parametrize("path", PATHS)
async def test_a_page_executes_only_statements_that_read_little(large, open_dashboard, executed, path):
    OPENED.add(path)
    shown = path
    limits = {name: max(most for each, _, most in CASES if each == name) for name, _, _ in CASES}
    dsn = large.info.dsn
    if "{ended}" in path:
        path = path.replace("{ended}", str(large.execute(ENDED).fetchone()[0]))
    async with open_dashboard(dsn=dsn, act_dsn=dsn) as client:
        response = await client.get(path)
    assert response.status_code in (200, 303)
    statements = [(name, values) for name, values in executed if name not in OF_CONNECTIONS]
    for name, values in statements:
        EXECUTED.add(name)
        assert name in limits, f"{name} is not among CASES"
        assert rows_read(plan_of(large, name, values)["Plan"]) <= limits[name], (name, values)
    if SCALE >= 1_000_000:  # on tables of the size that is promised
        TIMES[shown] = [(time_of(large, name, values), name) for name, values in statements]
        assert sum(spent for spent, _ in TIMES[shown]) < 0.2, TIMES[shown]


def test_every_statement_of_the_cases_is_executed_by_a_page():
    """After the test of the pages: a statement that no page executes need not be examined."""
    if set(PATHS) != OPENED:
        pytest.skip("another process opens some of the pages: use --dist loadgroup")
    assert {name for name, _, _ in CASES} - EXECUTED == set()
