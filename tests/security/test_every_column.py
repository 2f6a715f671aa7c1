"""Every column that a role may write: no value of it stops a worker, maintenance, a list or a page.

The columns come from the catalogue of the database and the rights of the roles, so a new one is tried, too.
"""

import contextlib
import io
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import attrs
import httpx
import psycopg
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql
from security_helpers import as_role, granted_database, role

import trioboss
from trioboss.cli import main
from trioboss.dashboard import make_app
from trioboss.postgres.blocking import execute_blocking

EXAMPLES = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
INSTANTS = ("infinity", "-infinity", "4713-01-01 BC", "294276-12-31 23:00Z", "9999-12-31Z", "2000-01-01Z")
TEXTS = ("", "q", "fifo", "*", "%s", "\u202e\x1b[31m\n", "x" * 300, "x" * 20_000, "y" * 2_000_000)
DOCUMENTS = (
    *("null", "1", '"x"', "[]", "{}", "[1e400]", '{"a": 1e131071}', '{"error": 1}', '{"source": {}}'),
    *('{"retry_limit": "x"}', '{"unknown": 1}', '{"a": 1e300}', "[" * 900 + "]" * 900),
    # Values of notes that statements compute with, or that become columns of a job that is queued again.
    *('{"singleton_on": "soon"}', '{"failures": "many"}', '{"failed_on": "?"}', '{"unique_key": "k"}'),
    *('{"redriven": "q"}', '{"source": {"id": "x", "queue": "q", "created_on": "y", "retry_count": "z"}}'),
)
VALUES: dict[str, tuple[object, ...]] = {
    "timestamp with time zone": INSTANTS,
    "timestamp without time zone": INSTANTS,
    "interval": ("178000000 years", "-178000000 years", "-1 s", "0", "1 us"),
    "integer": (-(2**31), -1, 0, 1, 10**9, 2**31 - 1),
    "bigint": (-(2**63), -1, 0, 1, 2**63 - 1),
    "double precision": ("NaN", "Infinity", "-Infinity", "-1", "0", "1e308", "1e-308"),
    "boolean": ("true", "false"),
    "text": TEXTS,
    "uuid": (str(UUID(int=0)), str(UUID(int=2**128 - 1))),
    "jsonb": DOCUMENTS,
    "xid8": ("0", "3", "18446744073709551615"),
    "integer[]": ("{}", "{NULL}", "{1,2,3}", "{-1}", "{" + ",".join(["2147483647"] * 13) + "}", "{{1},{2}}"),
    "text[]": ("{}", "{NULL}", "{q}"),
}
# The values that a row needs besides the column that is tried.
NEEDED: dict[str, object] = {
    "timestamp with time zone": "now",
    "integer": 1,
    "bigint": 1,
    "text": "q",
    "uuid": str(UUID(int=7)),
    "jsonb": "{}",
}
PARTICULAR = {
    ("job", "name"): "q",
    ("attempt", "outcome"): "failed",
    ("archive", "outcome"): "completed",
    ("live_job", "readiness"): "ready",
    ("schedule", "cron"): "* * * * *",
    ("tick", "key"): "k",
    ("deleted_history", "history"): "archive",
    ("deleted_history", "xid"): "5",
    ("history_audit", "queues"): "{}",
}
COLUMNS = """
    select c.relname, a.attname, coalesce(nullif(t.typbasetype, 0), t.oid)::regtype::text,
           a.attnotnull and not a.atthasdef,
           array(select enumlabel::text from pg_enum where enumtypid = t.oid), t.typtype = 'd'
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
    join pg_type t on t.oid = a.atttypid
    where c.relnamespace = 'trioboss'::regnamespace and c.relkind in ('r', 'p', 'v') and not c.relispartition
    order by 1, a.attnum"""
# Tables that examples change, besides queue, schedule and subscription.
CHANGED = (
    *(
        "live_job",
        "archive",
        "attempt",
        "throttle",
        "worker",
        "idle_dispatcher",
        "completion_waiter",
        "tick",
        "leader",
    ),
    *(
        "queue_sample",
        "sampling",
        "warning",
        "audit",
        "deleted_history",
        "history_audit",
        "staging",
        "backlog_check",
    ),
    *("schedule", "subscription", "reader"),
)
ROWS = (
    "insert into trioboss.sampling (counted, xid) values (now() - interval '5 min', '3')",
    "insert into trioboss.worker (id, boss, name, queue, lock, pid) "
    "values (gen_random_uuid(), gen_random_uuid(), 'w', 'q', 42, 1)",
    "insert into trioboss.idle_dispatcher values ('q', gen_random_uuid())",
    "insert into trioboss.completion_waiter values (gen_random_uuid(), gen_random_uuid(), now())",
    "insert into trioboss.tick (queue, key, due) values ('q', 'k', now() - interval '90 s')",
    "insert into trioboss.leader values (true, gen_random_uuid(), now())",
    "insert into trioboss.queue_sample (minute, queue, ready, completed, waits, runs) "
    "values (date_trunc('minute', now()), 'q', 1, 2, array_fill(1, array[13]), array_fill(1, array[13]))",
    "insert into trioboss.warning (queue, kind, message, first_on, last_on) "
    "values ('q', 'queue_size', 'm', now(), now())",
    "insert into trioboss.audit (who, action, queue, filter) values ('somebody', 'cancel', 'q', '{}')",
    "insert into trioboss.deleted_history values ('archive', '5')",
    "insert into trioboss.history_audit values ('database', now(), now(), now(), '{}', 1, 1, '{\"overlap\": 1}', '{}')",
)
PAGES = (
    *(
        "/",
        "/queues/q",
        "/queues/q?span=24h",
        "/queues/q/jobs",
        "/queues/q/jobs?state=failed",
        "/queues/fifo/keys",
    ),
    *("/schedules", "/workers", "/events", "/events?kind=attempt", "/pipeline", "/audit"),
)
COMMANDS = (["queues"], ["workers"], ["schedules"], ["jobs", "q"], ["jobs", "q", "--newest"])


@attrs.frozen
class Column:
    """A column, and how it is written."""

    table: str
    name: str
    type: str
    is_needed: bool
    labels: tuple[str, ...]
    is_bounded: bool

    def values(self) -> tuple[object, ...]:
        return (*(self.labels or VALUES[self.type]), None)


@attrs.frozen
class Attack:
    """A role that writes, the owner who sees to it that there is something to write to, and a boss that has to cope."""

    dsn: str
    boss: trioboss.SyncBoss
    owner: psycopg.Connection[Any]
    roles: dict[str, psycopg.Connection[Any]]
    columns: list[Column]
    app: Any

    def writable(self, kind: str, right: str) -> list[Column]:
        """The columns that the role may insert or update."""
        allowed = "select has_column_privilege(%s, %s::regclass, %s, %s)"
        return [
            each
            for each in self.columns
            if self.owner.execute(
                allowed, [role(kind), f"trioboss.{each.table}", each.name, right]
            ).fetchone()[0]
        ]

    def write(self, kind: str, right: str, column: Column, value: object) -> bool:
        """Whether the database has accepted the value."""
        table, name = sql.Identifier(column.table), sql.Identifier(column.name)
        if right == "UPDATE":
            statement, values = sql.SQL("update trioboss.{} set {} = %s").format(table, name), [value]
        else:
            row = {
                each.name: needed(each)
                for each in self.columns
                if each.table == column.table and each.is_needed
            }
            row |= {each: found for (of, each), found in PARTICULAR.items() if of == column.table}
            row[column.name] = value
            statement = sql.SQL("insert into trioboss.{} ({}) values ({})").format(
                table,
                sql.SQL(", ").join(map(sql.Identifier, row)),
                sql.SQL(", ").join(sql.Placeholder() * len(row)),
            )
            values = list(row.values())
        try:
            return self.roles[kind].execute(statement, values).rowcount > 0
        except (psycopg.DataError, psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded):
            return False

    def fill(self) -> None:
        """Rows of every kind, and jobs in every state."""
        for table in CHANGED:
            self.owner.execute(f"delete from trioboss.{table}")
        for row in ROWS[:1]:
            self.owner.execute(row)
        boss = self.boss
        boss.schedule("q", "* * * * *", {"a": 1}, key="k")
        boss.subscribe("event", "q")
        boss.send("q", 1)
        boss.send_throttled("q", 2, 86400, "t")
        boss.complete("q", boss.fetch("q", batch_size=2))
        boss.send("q", 3, retry_limit=0)
        boss.fail("q", boss.fetch("q"), "broken")
        boss.cancel("q", boss.send("q", 3))
        boss.send("q", 4)
        boss.fetch("q")
        boss.send("q", 5)
        boss.send("q", 6, start_after=3600)
        for number in (1, 2):
            boss.send("fifo", number, singleton_key="a")
        boss.fail("fifo", boss.fetch("fifo"), "broken")
        for row in ROWS[1:]:
            self.owner.execute(row)

    def use(self) -> None:
        """Everything that reads or ends jobs, and maintenance: none of it raises, and a neighbour goes through."""
        neighbours = {
            name: self.boss.send(name, "neighbour", priority=100, singleton_key="neighbour")
            for name in ("q", "fifo")
        }
        self.maintain()
        for name, id in neighbours.items():
            jobs = self.boss.fetch(name, batch_size=100)
            assert id in [job.id for job in jobs]
            self.boss.complete(name, id)
            with contextlib.suppress(trioboss.LeaseLost):
                self.boss.fail(name, [job for job in jobs if job.id != id], "broken")
        self.maintain()
        self.read()
        self.queue_again()

    def queue_again(self) -> None:
        """All jobs that ended: one that cannot be queued again keeps no other from it."""
        for again, outcome in ((self.boss.retry, "failed"), (self.boss.resume, "cancelled")):
            sound = self.boss.send("q", "neighbour", retry_limit=0, priority=100)
            if outcome == "failed":
                self.boss.fail("q", self.boss.fetch("q"), "broken")
            else:
                self.boss.cancel("q", sound)
            found = self.owner.execute(
                "select id from trioboss.archive where queue = 'q' and outcome = %s", [outcome]
            )
            assert sound in again("q", [id for (id,) in found]).ids

    def maintain(self) -> None:
        store = self.boss._store
        with self.boss._borrow(self.boss._idle, {}) as own:
            for operation in (
                store.maintenance.rescue_leases(5.0, 1.0, warnings=True),
                store.maintenance.find_long_queues(),
                store.statistics.sample(),
                store.statistics.count_states(),
                store.statistics.keep_warnings([("q", "queue_size", "again")]),
                store.schedules.read_ticks(),
                store.retention.prune(),
            ):
                execute_blocking(own, operation, own)

    def read(self) -> None:
        for job in self.boss.find_jobs("q"):
            self.boss.why("q", job.id)
        self.boss.get_schedules()
        self.boss.get_queues()
        self.boss.publish("event", 1)
        self.boss.redrive("letters")
        for command in COMMANDS:
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                assert main([*command, "--dsn", self.dsn]) == 0, said.getvalue()
        trio.run(self.read_pages)

    async def read_pages(self) -> None:
        transport = httpx.ASGITransport(app=self.app, client=("127.0.0.1", 50000))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for page in PAGES:
                response = await client.get(page)
                assert response.status_code < 500, (page, response.text[-500:])


def needed(column: Column) -> object:
    return column.labels[0] if column.labels else NEEDED.get(column.type)


@pytest.fixture(scope="module")
def attack(server_dsn: str, template: str, roles: None) -> Iterator[Attack]:
    with (
        granted_database(server_dsn, template) as dsn,
        trioboss.SyncBoss(dsn, migrate=False) as boss,
        psycopg.connect(dsn, autocommit=True) as owner,
        psycopg.connect(as_role(dsn, "producer"), autocommit=True) as producer,
        psycopg.connect(as_role(dsn, "worker"), autocommit=True) as worker,
    ):
        boss.create_queue("letters")
        boss.create_queue("q", dead_letter="letters", retry_limit=1)
        boss.create_queue("fifo", policy="key_strict_fifo", retry_limit=0)
        columns = [
            Column(table, name, kind, needed, tuple(labels), bounded)
            for table, name, kind, needed, labels, bounded in owner.execute(COLUMNS).fetchall()
        ]
        app = make_app(dsn)
        yield Attack(dsn, boss, owner, {"producer": producer, "worker": worker}, columns, app)
        app._close()


@EXAMPLES
@given(st.data())
@pytest.mark.parametrize("kind", ["producer", "worker"])
def test_no_value_of_a_column_that_a_role_may_write_stops_anything(attack, kind, data):
    right = data.draw(st.sampled_from(["INSERT"] if kind == "producer" else ["INSERT", "UPDATE"]))
    column = data.draw(st.sampled_from(attack.writable(kind, right)))
    value = data.draw(st.sampled_from(column.values()))
    attack.fill()
    if attack.write(kind, right, column, value):
        attack.use()


FOUND = [
    # Each of these kept a page, a command or the samples from going on.
    *(("UPDATE", "archive", "completed_on", value) for value in ("-infinity", "294276-12-31 23:00Z")),
    ("INSERT", "archive", "completed_on", "infinity"),
    ("INSERT", "attempt", "queue", "y" * 2_000_000),
    *(
        ("UPDATE", "queue_sample", "waits", value)
        for value in (VALUES["integer[]"][-2], "{" + "1," * 19 + "1}")
    ),
    *(("UPDATE", "queue_sample", "completed", value) for value in (10**9, 2**31 - 1)),
    ("UPDATE", "queue_sample", "waits", "{" + ",".join(["1000000000"] * 13) + "}"),
    ("UPDATE", "queue_sample", "minute", "infinity"),
    *(("UPDATE", "warning", "count", value) for value in (10**9, 2**31 - 1)),
    ("INSERT", "audit", "at", "294276-12-31 23:00Z"),
    *(
        ("UPDATE", "history_audit", "violations", value)
        for value in ("1", '{"source": {}}', '{"a": 1e131071}')
    ),
    ("UPDATE", "schedule", "data", "[" * 900 + "]" * 900),
    # And these kept lists from being read, or jobs that ended from being queued again.
    *(("UPDATE", "archive", "notes", value) for value in DOCUMENTS[-7:]),
    *(("UPDATE", "archive", name, -5) for name in ("attempt", "retry_count")),
    ("UPDATE", "archive", "data", f"[{','.join(['1e131071'] * 2100)}]"),
]


@pytest.mark.parametrize("place", range(len(FOUND)))
def test_a_value_that_was_found_once_stops_nothing_any_more(attack, place):
    right, table, name, value = FOUND[place]
    (column,) = [
        each for each in attack.writable("worker", right) if (each.table, each.name) == (table, name)
    ]
    attack.fill()
    if attack.write("worker", right, column, value):
        attack.use()


def test_every_instant_and_duration_that_a_role_may_write_has_bounds(attack):
    """By a domain. A column without a bound is listed here, with the reason."""
    others = {
        *(
            ("archive", "completed_on"),
            ("attempt", "ended_on"),
        ),  # the bounds are those of the day, or a CHECK
        ("leader", "until"),  # a time far away is none that a leader has set (lead)
        *(
            ("staging", "start_after"),
            ("staging", "delay"),
        ),  # read by the transaction that wrote them, and no other
    }
    raw = {"timestamp with time zone", "timestamp without time zone", "date", "interval", "double precision"}
    found = {
        (each.table, each.name)
        for kind in ("producer", "worker")
        for right in ("INSERT", "UPDATE")
        for each in attack.writable(kind, right)
        if each.type in raw
        and not each.is_bounded
        and each.table != "job"  # the view: its trigger writes live_job
    }
    assert found == others


def test_an_unbounded_number_of_days_gets_no_tables(attack):
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        attack.roles["worker"].execute("select trioboss.add_days(current_date, 400)")
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        attack.roles["worker"].execute("select trioboss.add_days('infinity', 1)")
