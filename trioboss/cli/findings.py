"""The checks of `trioboss doctor` that need nothing but facts: each returns what it found, and what to do about it."""

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Literal

import attrs

from trioboss.errors import DatabaseUnavailable, SchemaOutOfDate
from trioboss.model.texts import count, show_seconds
from trioboss.postgres.errors import Refusal, classify_refusal

__all__ = [
    "Finding",
    "check_bloat",
    "check_clock",
    "check_connection",
    "check_durability",
    "check_encryption",
    "check_notify_queue",
    "check_pooler",
    "check_queue",
    "check_rights",
    "check_schedules",
    "check_sessions",
    "check_vacuum",
    "describe_refusal",
    "describe_schema",
]


@attrs.frozen
class Finding:
    """The result of one check."""

    check: str
    status: Literal["ok", "warning", "failure", "skipped"]
    text: str
    advice: str = ""


def check_connection(version: str, seconds: float) -> Finding:
    """The server answers."""
    return Finding("connection", "ok", f"Postgres {version}, a transaction takes {seconds * 1000:.1f} ms")


def check_clock(now: datetime) -> Finding:
    """Whether the clocks agree."""
    off = abs((datetime.now(UTC) - now).total_seconds())
    text = f"this machine and the database differ by {off:.2f} s"
    if off < 5:
        return Finding("clock", "ok", text)
    return Finding("clock", "warning", text + ": start times are those of the database", "run NTP on both")


def check_encryption(ssl: bool | None, version: str | None, local: bool) -> Finding:
    """Whether others can read along."""
    if ssl:
        return Finding("encryption", "ok", f"encrypted with {version}")
    if local:
        return Finding("encryption", "ok", "not encrypted, but on this machine")
    return Finding("encryption", "warning", "not encrypted", "use sslmode=verify-full in the dsn")


def check_durability(synchronous_commit: str, fsync: str) -> Finding:
    """Whether a crash can lose a commit."""
    if fsync == "off":
        return Finding(
            "durability",
            "failure",
            "fsync is off: a crash of the server can lose everything",
            "set fsync = on",
        )
    return Finding(
        "durability", "ok", f"fsync is on; synchronous_commit is {synchronous_commit} in our sessions"
    )


def check_vacuum(autovacuum: str, oldest: float) -> Finding:
    """Whether dead rows are removed."""
    if autovacuum != "on":
        return Finding(
            "vacuum",
            "failure",
            "autovacuum is off: the tables of the queues grow without limit",
            "set autovacuum = on",
        )
    text = f"autovacuum is on; the oldest snapshot is {oldest:.0f} s old"
    if oldest < 300:
        return Finding("vacuum", "ok", text)
    return Finding(
        "vacuum",
        "warning",
        text,
        "find its transaction in pg_stat_activity: dead rows cannot be removed until it ends",
    )


def check_notify_queue(usage: float) -> Finding:
    """Whether notifications pile up."""
    text = f"the server's notification queue is {usage:.1%} full"
    if usage < 0.1:
        return Finding("notify queue", "ok", text)
    return Finding(
        "notify queue", "warning", text, "end the session that listens and has an open transaction"
    )


def check_bloat(table: str, live: int, dead: int) -> Finding:
    """Whether a table is full of dead rows."""
    text = f"{live} rows, {dead} dead"
    if dead < 100_000 or dead < 2 * live:
        return Finding(f"table {table}", "ok", text)
    return Finding(
        f"table {table}", "warning", text, f"VACUUM {table}, and find out what has kept autovacuum from it"
    )


def check_pooler(is_pooled: bool, pid: int) -> Finding:
    """Whether a transaction pooler is in between."""
    if is_pooled:
        text = "connected through a transaction pooler"
        return Finding("pooler", "warning", text, "fine for sending; workers should connect directly")
    return Finding("pooler", "ok", f"connected directly, to backend {pid}")


# -- where nothing can be examined


def describe_refusal(error: DatabaseUnavailable) -> Finding:
    """Why there is no connection: each cause has its own remedy."""
    advice = {
        Refusal.PASSWORD: "check the user and the password: in the dsn, in PGPASSWORD, or in ~/.pgpass",
        Refusal.DATABASE: "create the database (createdb), or name another one in the dsn",
        Refusal.ROLE: "create the role (createuser), or name another user in the dsn",
        Refusal.HOST_RULES: "let pg_hba.conf of the server accept this user, database and address",
        Refusal.NAME: "check the name of the host in the dsn",
        Refusal.FULL: "end other sessions, or raise max_connections",
        Refusal.OTHER: "check that the server runs, and that --dsn, TRIOBOSS_DSN or DATABASE_URL names it",
    }
    return Finding("connection", "failure", str(error), advice[classify_refusal(error)])


def describe_schema(
    error: SchemaOutOfDate, role: str, owner: str | None, owns: bool, creates: bool
) -> Finding:
    """A schema that this program cannot use, with the remedy for the role that asks."""
    if error.found is None:
        text = f"{error.schema!r} is not installed"
        advice = "run `trioboss migrate`, or use another --schema"
    else:
        text = f"{error.schema!r} is at version {error.found}, not {error.needed}"
        advice = "run `trioboss migrate`" if error.found < error.needed else "upgrade trioboss"
    if "migrate" in advice and not (owns or (owner is None and creates)):
        whom = f"role {owner!r}, which owns the schema" if owner else "a role that may create schemas"
        advice += f", as {whom}: role {role!r} may not"
    return Finding("schema", "failure", text, advice)


# -- sessions, queues, schedules


def check_sessions(
    idle_session_timeout: str,
    statement_timeout: str,
    lock_timeout: str,
    read_only: str,
    standby: bool,
    used: int,
    connections: int,
) -> Iterator[Finding]:
    """Settings that end or break the sessions of workers."""
    if standby or read_only == "on":
        text = (
            "the server is a standby"
            if standby
            else "transactions are read-only (default_transaction_read_only)"
        )
        yield Finding(
            "writing", "failure", text, "connect to the primary: target_session_attrs=read-write in the dsn"
        )
    bad = [
        f"{name} = {value}"
        for name, value in (
            ("idle_session_timeout", idle_session_timeout),
            ("statement_timeout", statement_timeout),
            ("lock_timeout", lock_timeout),
        )
        if value != "0"
    ]
    if bad:
        advice = "set them to 0 for the role of the workers: ALTER ROLE … SET idle_session_timeout = 0"
        yield Finding(
            "sessions", "warning", f"{', '.join(bad)}: ends idle listeners or long statements", advice
        )
    else:
        yield Finding("sessions", "ok", "no time-out ends the session of a listener")
    text = f"{used} of {connections} connections are in use"
    if used < 0.9 * connections:
        yield Finding("connections", "ok", text)
    else:
        yield Finding("connections", "warning", text, "use a pooler for producers, or raise max_connections")


def check_queue(
    name: str,
    policy: str,
    paused: bool,
    due: int,
    age: float,
    workers: int,
    keys: int,
    dead_letters: int,
    blocked: int,
) -> Iterator[Finding]:
    """A queue whose jobs will not run, or not as somebody may expect."""

    def warn(text: str, advice: str) -> Finding:
        return Finding(f"queue {name}", "warning", text, advice)

    if due and not workers:
        noun = "dead letter" if dead_letters == due else "job"
        many = f"1000 or more {noun}s wait" if due >= 1000 else count(due, noun, "waits", "wait")
        text = f"{many}, the oldest for {show_seconds(age)}, and no worker takes them"
        advice = "start a worker for it: trioboss worker MODULE:APP"
        if dead_letters == due:
            advice = (
                f"trioboss jobs {name} lists them, trioboss redrive {name} --dry-run counts those that it would send "
                "back; delete the copies of jobs that were retried and have completed"
            )
        yield warn(text, advice)
    if due and paused:
        yield warn(f"{count(due, 'job', 'waits', 'wait')}: it is paused", f"trioboss unpause {name}")
    if blocked:
        text = "1 key is blocked by a failed job"
        if blocked > 1:
            text = f"{blocked} keys are blocked by failed jobs"
        yield warn(text, f"trioboss blocked {name} lists them, with the commands that unblock them")
    if keys and policy == "standard":
        yield warn(
            "jobs have a singleton_key, which limits nothing under the policy standard",
            "use send_once, send_singleton or another policy, or leave the key out",
        )


def check_schedules(
    labels: list[tuple[str, str | None, str | None]], declared: Mapping[str, Collection[tuple[str, str]]]
) -> Finding:
    """Schedules that their app has dropped, and those that no app declares, where others are declared.

    ``declared``: the schedules of each app, as it was deployed last.
    """
    schedules = [(queue, key, label) for queue, key, label in labels if key is not None]
    loose = [_name(queue, key) for queue, key, label in schedules if label is None]
    dropped = {
        _name(queue, key): label
        for queue, key, label in schedules
        if label is not None and label in declared and (queue, key) not in declared[label]
    }
    if dropped:
        text = f"their app no longer declares {_some(list(dropped))}"
        app = min(set(dropped.values()))
        advice = f"trioboss migrate MODULE:APP --prune, for the app {app!r}, or trioboss unschedule QUEUE"
        return Finding("schedules", "warning", text, advice)
    if loose and any(label is not None for _, _, label in labels):
        advice = "declare it with @app.schedule, or remove it: trioboss unschedule QUEUE"
        return Finding("schedules", "warning", f"no app declares {_some(loose)}", advice)
    of_apps = len(schedules) - len(loose)
    return Finding("schedules", "ok", f"{count(len(schedules), 'schedule')}, {of_apps} of apps")


def _name(queue: str, key: str) -> str:
    return f"{queue}/{key}" if key else queue


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")


def check_rights(role: str, kind: str | None, missing: list[str]) -> Finding:
    """Whether a role has all the rights of the kind of role that it is."""
    if kind is None:
        text = f"role {role!r} has the rights of no kind of role"
        return Finding("rights", "warning", text, "as the owner of the schema: trioboss grants, see -h")
    if not missing:
        return Finding("rights", "ok", f"role {role!r} has the rights of {kind}")
    advice = f"as the owner of the schema: trioboss grants --{kind.split()[-1]} {role} --apply"
    return Finding("rights", "failure", f"role {role!r}, {kind}, lacks {_some(missing)}", advice)
