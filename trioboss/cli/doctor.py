"""`trioboss doctor`: checks the installation, and names a remedy for each fault that it finds."""

import argparse
import time
from collections.abc import Iterator
from contextlib import closing

import attrs

from trioboss.api.observing import find_missing_rights, get_declared_schedules
from trioboss.api.sync import SyncBoss
from trioboss.cli.drift import find_drift
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
from trioboss.cli.opening import open_sync
from trioboss.cli.output import print_json
from trioboss.errors import DatabaseUnavailable, SchemaOutOfDate
from trioboss.model.texts import printable
from trioboss.postgres.blocking import BlockingConnection, is_pooled, open_blocking
from trioboss.postgres.errors import is_permission_denied
from trioboss.sql import Catalog
from trioboss.sql.grants import needed_rights
from trioboss.sql.plans import LATEST

__all__ = ["run_doctor"]

_PROBE = "*probe doctor"  # what examine_notify.sql sends; bosses ignore probes of others
_NOTIFY_TIMEOUT = 3.0  # seconds that a notification has to arrive
_MOST_DRIFT = 20  # differences that are listed
_SIMILAR = 0.3  # the share of rights that a role of a kind may lack


def run_doctor(args: argparse.Namespace) -> int:
    """Run all checks; the exit code is 1 if one fails."""
    findings = _find(args)
    if not any(
        finding.check in ("connection", "schema") and finding.status == "failure" for finding in findings
    ):
        findings += _find_drift(args)
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
            boss.get_queues()  # raises if the schema cannot be used
            for finding in _examine(boss, conn):
                findings.append(finding)  # noqa: PERF402 - findings before a failure are kept
    except SchemaOutOfDate as error:
        findings.append(Finding("connection", "ok", "the server answers"))
        findings.append(_examine_schema(args, error))
    except DatabaseUnavailable as error:
        findings.append(describe_refusal(error))
    return findings


def _examine_schema(args: argparse.Namespace, error: SchemaOutOfDate) -> Finding:
    with SyncBoss(args.dsn, schema=args.schema, migrate=False) as boss, boss.unchecked_transaction() as conn:
        row = conn.execute(Catalog(args.schema).get("examine_role").text.encode()).fetchone()
    assert row is not None
    return describe_schema(error, *row)


def _examine(boss: SyncBoss, conn: BlockingConnection) -> Iterator[Finding]:
    """All findings, one after the other. The connection has the settings that the user's role gets."""
    catalog = Catalog(boss.schema)

    def read(statement: str) -> list[tuple]:  # type: ignore[type-arg]
        return conn.execute(catalog.get(statement).text.encode()).fetchall()

    began = time.perf_counter()
    ((version, backend, now, ssl, ssl_version, local, commit, fsync, autovacuum, oldest, usage),) = read(
        "examine"
    )
    yield check_connection(version, time.perf_counter() - began)
    yield check_clock(now)
    yield _check_schema(boss)
    yield _check_notify(conn, catalog)
    yield check_pooler(is_pooled(conn), backend)
    yield check_encryption(ssl, ssl_version, local)
    yield check_durability(commit, fsync)
    yield check_vacuum(autovacuum, oldest)
    yield check_notify_queue(usage)
    yield from check_sessions(*read("examine_sessions")[0])
    for table, live, dead in read("examine_tables"):
        yield check_bloat(table, live, dead)
    yield _check_rights(boss, read("examine_role")[0][0])
    try:
        for row in read("examine_queues"):
            yield from check_queue(*row)
        yield check_schedules(read("get_labels"), get_declared_schedules(boss))
    except Exception as error:
        if not is_permission_denied(error):
            raise
        yield Finding(
            "queues", "skipped", "this role may not read jobs", "run doctor as a worker or a reader"
        )


def _check_rights(boss: SyncBoss, role: str) -> Finding:
    """Whether the role lacks a right, because its rights were not granted again after a migration."""
    # A worker has nearly all rights of the others, so it is the first candidate.
    for kind in ("worker", "reader", "producer"):
        needed = needed_rights(boss.schema, kind)
        missing = find_missing_rights(boss, needed)
        if len(missing) < _SIMILAR * len(needed):
            names = sorted(
                {f"{each.right} on {each.name.partition('.')[2] or each.name}" for each in missing}
            )
            return check_rights(role, f"a {kind}", names)
    return check_rights(role, None, [])


def _check_schema(boss: SyncBoss) -> Finding:
    version = boss.schema_version()
    compatible = "" if version == LATEST else f", newer than {LATEST} and compatible with it"
    return Finding("schema", "ok", f"{boss.schema!r} is at version {version}{compatible}")


def _check_notify(conn: BlockingConnection, catalog: Catalog) -> Finding:
    """Whether a session receives its own notification, as the listener of a worker has to."""
    # Behind a transaction pooler LISTEN would stay in a server session that other clients use, too.
    if not is_pooled(conn):
        conn.execute(catalog.get("listen").text.encode())
        began = time.perf_counter()
        conn.execute(catalog.get("examine_notify").text.encode())
        for notification in conn.notifies(timeout=_NOTIFY_TIMEOUT):
            if notification.payload == _PROBE:
                milliseconds = (time.perf_counter() - began) * 1000
                return Finding("notify", "ok", f"a notification arrived within {milliseconds:.0f} ms")
    text = "notifications do not arrive: workers poll every 2 s (polling mode)"
    return Finding("notify", "warning", text, "connect workers directly, not through a transaction pooler")


def _find_drift(args: argparse.Namespace) -> Iterator[Finding]:
    """Compare the schema with what the migrations make."""
    try:
        with SyncBoss(args.dsn, schema=args.schema, migrate=False) as boss:
            if boss.schema_version() != LATEST:
                yield Finding(
                    "drift", "skipped", "the schema is newer than this program", "use the newer doctor"
                )
                return
            drift = find_drift(boss)
    except Exception as error:
        if not is_permission_denied(error):
            raise
        text = "not compared with the migrations: this role may not create the schema to compare with"
        yield Finding("drift", "skipped", text, "run doctor as the owner of the database")
        return
    if not drift:
        yield Finding("drift", "ok", "the schema is what the migrations make")
    for each in drift[:_MOST_DRIFT]:
        yield Finding("drift", "failure", each.text, each.repair)
    if len(drift) > _MOST_DRIFT:
        yield Finding("drift", "failure", f"{len(drift) - _MOST_DRIFT} more differences")
