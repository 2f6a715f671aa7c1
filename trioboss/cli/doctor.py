"""`trioboss doctor`: checks the installation, and says what to do about what it finds."""

import argparse
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Literal

import attrs
import trio

from trioboss.api.boss import Boss
from trioboss.cli.opening import open_for
from trioboss.cli.output import print_json, printable
from trioboss.errors import DatabaseUnavailable, SchemaOutOfDate
from trioboss.sql import Catalog
from trioboss.sql.plans import LATEST

__all__ = ["doctor"]

_NOTIFY_TIMEOUT = 3.0  # seconds that a notification has to arrive


@attrs.frozen
class Finding:
    """The result of one check."""

    check: str
    status: Literal["ok", "warning", "failure"]
    text: str
    advice: str = ""


async def doctor(args: argparse.Namespace) -> int:
    """Run all checks; the exit code is 1 if one fails."""
    findings = await _find(args)
    if args.json:
        print_json([attrs.asdict(finding) for finding in findings])
    else:
        for finding in findings:
            print(printable(f"{finding.status:<8} {finding.check}: {finding.text}"))
            if finding.advice:
                print(f"{'':<8} → {finding.advice}")
    return 1 if any(finding.status == "failure" for finding in findings) else 0


async def _find(args: argparse.Namespace) -> list[Finding]:
    """All findings; also that nothing could be examined."""
    findings: list[Finding] = []
    try:
        async with open_for(args) as boss:
            async for finding in examine(boss):
                findings.append(finding)  # noqa: PERF401 - findings before a failure are kept
    except SchemaOutOfDate as error:
        findings.append(Finding("connection", "ok", "the server answers"))
        findings.append(_describe_schema(error))
    except DatabaseUnavailable as error:
        advice = "check that the server runs, and that --dsn, TRIOBOSS_DSN or DATABASE_URL names it"
        findings.append(Finding("connection", "failure", str(error), advice))
    return findings


def _describe_schema(error: SchemaOutOfDate) -> Finding:
    if error.found is None:
        text, advice = f"{error.schema!r} is not installed", "run trioboss migrate, or use another --schema"
    else:
        text = f"{error.schema!r} is at version {error.found}, not {error.needed}"
        advice = "run trioboss migrate" if error.found < error.needed else "upgrade trioboss"
    return Finding("schema", "failure", text, advice)


async def examine(boss: Boss) -> AsyncIterator[Finding]:
    """All findings, one after the other."""
    catalog = Catalog(boss.schema)
    began = time.perf_counter()
    async with boss.transaction() as conn:
        facts = await (await conn.execute(catalog.get("examine").text.encode())).fetchone()
    assert facts is not None
    version, backend, now, ssl, ssl_version, local, commit, fsync, autovacuum, oldest, usage = facts
    yield _check_connection(version, time.perf_counter() - began)
    yield _check_clock(now)
    yield await _check_schema(boss)
    yield await _check_notify(boss)
    yield _check_pooler(boss, backend)
    yield _check_encryption(ssl, ssl_version, local)
    yield _check_durability(commit, fsync)
    yield _check_vacuum(autovacuum, oldest)
    yield _check_notify_queue(usage)
    async with boss.transaction() as conn:
        tables = await (await conn.execute(catalog.get("examine_tables").text.encode())).fetchall()
    for table, live, dead in tables:
        yield _check_bloat(table, live, dead)


def _check_connection(version: str, seconds: float) -> Finding:
    return Finding("connection", "ok", f"Postgres {version}, a transaction takes {seconds * 1000:.1f} ms")


async def _check_schema(boss: Boss) -> Finding:
    version = await boss.schema_version()
    if version == LATEST:
        return Finding("schema", "ok", f"{boss.schema!r} is at version {version}")
    return _describe_schema(SchemaOutOfDate(boss.schema, version, LATEST))


async def _check_notify(boss: Boss) -> Finding:
    began = time.perf_counter()
    with trio.move_on_after(_NOTIFY_TIMEOUT):
        await boss.wait_listening()
        if not boss.statistics().listener.polling:
            milliseconds = (time.perf_counter() - began) * 1000
            return Finding("notify", "ok", f"a notification arrived within {milliseconds:.0f} ms")
    text = "notifications do not arrive: workers poll every 2 s"
    return Finding("notify", "warning", text, "connect workers directly, not through a transaction pooler")


def _check_pooler(boss: Boss, pid: int) -> Finding:
    if boss.is_pooled:
        text = "connected through a transaction pooler"
        return Finding("pooler", "warning", text, "fine for sending; workers should connect directly")
    return Finding("pooler", "ok", f"connected directly, to backend {pid}")


def _check_clock(now: datetime) -> Finding:
    off = abs((datetime.now(UTC) - now).total_seconds())
    text = f"this machine and the database differ by {off:.2f} s"
    if off < 5:
        return Finding("clock", "ok", text)
    return Finding("clock", "warning", text + ": start times are those of the database", "run NTP on both")


def _check_encryption(ssl: bool | None, version: str | None, local: bool) -> Finding:
    if ssl:
        return Finding("encryption", "ok", f"encrypted with {version}")
    if local:
        return Finding("encryption", "ok", "not encrypted, but on this machine")
    return Finding("encryption", "warning", "not encrypted", "use sslmode=verify-full in the dsn")


def _check_durability(synchronous_commit: str, fsync: str) -> Finding:
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


def _check_vacuum(autovacuum: str, oldest: float) -> Finding:
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


def _check_notify_queue(usage: float) -> Finding:
    text = f"the server's notification queue is {usage:.1%} full"
    if usage < 0.1:
        return Finding("notify queue", "ok", text)
    return Finding(
        "notify queue", "warning", text, "end the session that listens and has an open transaction"
    )


def _check_bloat(table: str, live: int, dead: int) -> Finding:
    text = f"{live} rows, {dead} dead"
    if dead < 100_000 or dead < 2 * live:
        return Finding(f"table {table}", "ok", text)
    return Finding(
        f"table {table}", "warning", text, f"VACUUM {table}, and find out what has kept autovacuum from it"
    )
