"""`trioboss doctor`: checks the installation, and names a remedy for each fault that it finds."""

import argparse
import time
from collections.abc import AsyncIterator, Iterator

import attrs
import trio

from trioboss.api.boss import Boss, open_boss
from trioboss.api.sync import SyncBoss
from trioboss.cli import opening
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
    check_schedules,
    check_sessions,
    check_vacuum,
    describe_refusal,
    describe_schema,
)
from trioboss.cli.output import print_json, printable
from trioboss.errors import DatabaseUnavailable, SchemaOutOfDate
from trioboss.postgres.embedded import find_dsn
from trioboss.postgres.errors import is_permission_denied
from trioboss.sql import Catalog
from trioboss.sql.plans import LATEST

__all__ = ["run_doctor"]

_NOTIFY_TIMEOUT = 3.0  # seconds that a notification has to arrive
_MOST_DRIFT = 20  # differences that are listed


def run_doctor(args: argparse.Namespace) -> int:
    """Run all checks; the exit code is 1 if one fails."""
    findings = trio.run(_find, args)
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


async def _find(args: argparse.Namespace) -> list[Finding]:
    """All findings; also that nothing could be examined."""
    findings: list[Finding] = []
    try:
        async with open_boss(
            args.dsn,
            schema=args.schema,
            migrate=find_dsn(args.dsn) is None,
            supervise=False,
            schedule=False,
            connect_wait=opening.CONNECT_WAIT,
        ) as boss:
            async for finding in _examine(boss):
                findings.append(finding)  # noqa: PERF401 - findings before a failure are kept
    except SchemaOutOfDate as error:
        findings.append(Finding("connection", "ok", "the server answers"))
        findings.append(await trio.to_thread.run_sync(_examine_schema, args, error))
    except DatabaseUnavailable as error:
        findings.append(describe_refusal(error))
    return findings


def _examine_schema(args: argparse.Namespace, error: SchemaOutOfDate) -> Finding:
    with SyncBoss(args.dsn, schema=args.schema, migrate=False) as boss, boss.unchecked_transaction() as conn:
        row = conn.execute(Catalog(args.schema).get("examine_role").text.encode()).fetchone()
    assert row is not None
    return describe_schema(error, *row)


async def _examine(boss: Boss) -> AsyncIterator[Finding]:
    """All findings, one after the other."""
    began = time.perf_counter()
    (
        (version, backend, now, ssl, ssl_version, local, commit, fsync, autovacuum, oldest, usage),
    ) = await _read(boss, "examine")
    yield check_connection(version, time.perf_counter() - began)
    yield check_clock(now)
    yield await _check_schema(boss)
    yield await _check_notify(boss)
    yield check_pooler(boss.is_pooled, backend)
    yield check_encryption(ssl, ssl_version, local)
    yield check_durability(commit, fsync)
    yield check_vacuum(autovacuum, oldest)
    yield check_notify_queue(usage)
    for finding in check_sessions(*(await _read(boss, "examine_sessions"))[0]):
        yield finding
    for table, live, dead in await _read(boss, "examine_tables"):
        yield check_bloat(table, live, dead)
    try:
        for row in await _read(boss, "examine_queues"):
            for finding in check_queue(*row):
                yield finding
        yield check_schedules(await _read(boss, "get_labels"))
    except Exception as error:
        if not is_permission_denied(error):
            raise
        yield Finding(
            "queues", "skipped", "this role may not read jobs", "run doctor as a worker or a reader"
        )


async def _read(boss: Boss, statement: str) -> list[tuple]:  # type: ignore[type-arg]
    async with boss.transaction() as conn:
        cursor = await conn.execute(Catalog(boss.schema).get(statement).text.encode())
        return await cursor.fetchall()
    raise AssertionError


async def _check_schema(boss: Boss) -> Finding:
    version = await boss.schema_version()
    compatible = "" if version == LATEST else f", newer than {LATEST} and compatible with it"
    return Finding("schema", "ok", f"{boss.schema!r} is at version {version}{compatible}")


async def _check_notify(boss: Boss) -> Finding:
    began = time.perf_counter()
    with trio.move_on_after(_NOTIFY_TIMEOUT):
        await boss.wait_listening()
        if not boss.statistics().listener.polling:
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
