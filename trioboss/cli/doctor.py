"""`trioboss doctor`: checks the installation, and names a remedy for each fault that it finds."""

import argparse
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain
from typing import Any

import attrs

from trioboss.api.observing import get_declared_schedules
from trioboss.api.sync import SyncBoss
from trioboss.cli.drift import find_drift, has_lost_its_version
from trioboss.cli.findings import (
    Finding,
    check_bloat,
    check_clock,
    check_connection,
    check_durability,
    check_encryption,
    check_notify_queue,
    check_pooler,
    check_queue,
    check_rights,
    check_schedules,
    check_sessions,
    check_vacuum,
    describe_refusal,
    describe_schema,
)
from trioboss.cli.opening import explain, open_sync
from trioboss.cli.output import print_json
from trioboss.cli.role_kinds import find_role_kind
from trioboss.errors import DatabaseUnavailable, SchemaOutOfDate
from trioboss.model.texts import printable
from trioboss.postgres.blocking import BlockingConnection, is_pooled, open_blocking
from trioboss.postgres.errors import is_permission_denied
from trioboss.sql import Catalog
from trioboss.sql.plans import LATEST

__all__ = ["run_doctor"]

_PROBE = "*probe doctor"  # what examine_notify.sql sends; bosses ignore probes of others
_NOTIFY_TIMEOUT = 3.0  # seconds that a notification has to arrive

# The consequence, where the role may not do a check.
_SKIPPED = {
    "drift": (
        "not compared with the migrations: this role may not create the schema to compare with",
        "run doctor as the owner of the database",
    ),
    "queues": ("this role may not read jobs", "run doctor as a worker or a reader"),
    "schedules": ("this role may not read schedules", "run doctor as a worker or a reader"),
}


def run_doctor(args: argparse.Namespace) -> int:
    """Run all checks; the exit code is 1 if one fails."""
    findings = _find(args)
    if args.json:
        print_json([attrs.asdict(finding) for finding in findings])
    else:
        for finding in findings:
            print(printable(f"{finding.status:<8} {finding.check}: {finding.text}"))
            for number, line in enumerate(finding.advice.splitlines()):
                print(f"{'':<8} {' ' if number else '→'} {line}")
    return 1 if any(finding.status == "failure" for finding in findings) else 0


def _find(args: argparse.Namespace) -> list[Finding]:
    """All findings; also that nothing could be examined."""
    findings: list[Finding] = []
    try:
        with open_sync(args) as boss, closing(open_blocking(boss.dsn)) as conn:
            with boss.transaction():
                pass  # raises if the schema cannot be used
            for check, run in _Examination(boss, conn).checks():
                findings += _run_check(check, run)
    except SchemaOutOfDate as error:
        findings.append(Finding("connection", "ok", "the server answers"))
        findings += _examine_schema(args, error)
    except DatabaseUnavailable as error:
        findings.append(describe_refusal(error))
    return findings


def _run_check(check: str, run: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """The findings of a check. A check that fails is a finding, too: the others tell why."""
    try:
        yield from run()
    except DatabaseUnavailable:
        raise
    except Exception as error:
        text = explain(error)
        if text is None:
            raise
        if check in _SKIPPED and is_permission_denied(error):
            yield Finding(check, "skipped", *_SKIPPED[check])
        else:
            yield Finding(check, "failure", f"not checked: {text}", "repair what `drift` has found")


def _examine_schema(args: argparse.Namespace, error: SchemaOutOfDate) -> Iterator[Finding]:
    with SyncBoss(args.dsn, schema=args.schema, migrate=False) as boss:
        if not error.found and has_lost_its_version(boss):
            text = f"{boss.schema!r} has no row with its version, and cannot be migrated"
            yield Finding("schema", "failure", text, "repair what `drift` has found")
            yield from _run_check("drift", lambda: _compare(boss))
            return
        with boss.unchecked_transaction() as conn:
            row = conn.execute(Catalog(args.schema).get("examine_role").text.encode()).fetchone()
    assert row is not None
    yield describe_schema(error, *row)


def _compare(boss: SyncBoss) -> Iterator[Finding]:
    """Compare the schema with what the migrations make."""
    drift = find_drift(boss)
    if not drift:
        yield Finding("drift", "ok", "the schema is what the migrations make")
    for each in drift:
        yield Finding("drift", "failure", each.text, each.repair)


@attrs.frozen
class _Examination:
    """The checks of a schema that a boss can use. The connection has the settings that the user's role gets."""

    _boss: SyncBoss
    _conn: BlockingConnection

    def checks(self) -> Iterator[tuple[str, Callable[[], Iterable[Finding]]]]:
        """All checks, by the name under which a failure of the check itself is reported."""
        yield "server", self._check_server
        yield "schema", self._check_schema
        yield "drift", self._find_drift
        yield "notify", self._check_notify
        yield "sessions", lambda: check_sessions(*self._read("examine_sessions")[0])
        yield "tables", lambda: [check_bloat(*row) for row in self._read("examine_tables")]
        yield "rights", self._check_rights
        yield "queues", lambda: chain.from_iterable(check_queue(*row) for row in self._read("examine_queues"))
        yield "schedules", self._check_schedules

    def _read(self, statement: str) -> list[tuple[Any, ...]]:
        text = Catalog(self._boss.schema).get(statement).text
        return self._conn.execute(text.encode()).fetchall()

    def _check_server(self) -> Iterator[Finding]:
        began = time.perf_counter()
        row = self._read("examine")[0]
        version, backend, now, ssl, ssl_version, local, commit, fsync, autovacuum, oldest, usage = row
        yield check_connection(version, time.perf_counter() - began)
        yield check_clock(now)
        yield check_pooler(is_pooled(self._conn), backend)
        yield check_encryption(ssl, ssl_version, local)
        yield check_durability(commit, fsync)
        yield check_vacuum(autovacuum, oldest)
        yield check_notify_queue(usage)

    def _check_schema(self) -> Iterator[Finding]:
        version = self._boss.schema_version()
        compatible = "" if version == LATEST else f", newer than {LATEST} and compatible with it"
        yield Finding("schema", "ok", f"{self._boss.schema!r} is at version {version}{compatible}")

    def _find_drift(self) -> Iterator[Finding]:
        """Compare the schema, unless it is that of a newer program."""
        if self._boss.schema_version() == LATEST:
            yield from _compare(self._boss)
        else:
            text = "the schema is newer than this program"
            yield Finding("drift", "skipped", text, "use the newer doctor")

    def _check_notify(self) -> Iterator[Finding]:
        """Whether a session receives its own notification, as the listener of a worker has to."""
        # Behind a transaction pooler LISTEN would stay in a server session that other clients use, too.
        if not is_pooled(self._conn):
            catalog = Catalog(self._boss.schema)
            self._conn.execute(catalog.get("listen").text.encode())
            began = time.perf_counter()
            self._conn.execute(catalog.get("examine_notify").text.encode())
            for notification in self._conn.notifies(timeout=_NOTIFY_TIMEOUT):
                if notification.payload == _PROBE:
                    milliseconds = (time.perf_counter() - began) * 1000
                    yield Finding("notify", "ok", f"a notification arrived within {milliseconds:.0f} ms")
                    return
        text = "notifications do not arrive: workers poll every 2 s (polling mode)"
        yield Finding("notify", "warning", text, "connect workers directly, not through a transaction pooler")

    def _check_rights(self) -> Iterator[Finding]:
        """Whether the role lacks a right, because its rights were not granted again after a migration."""
        found = find_role_kind(self._boss)
        lacking = {f"{each.right} on {each.name.partition('.')[2] or each.name}" for each in found.missing}
        yield check_rights(found.role, found.text, sorted(lacking))

    def _check_schedules(self) -> Iterator[Finding]:
        yield check_schedules(self._read("get_labels"), get_declared_schedules(self._boss))
