"""`trioboss doctor`: is everything as it should be, and what to do if not."""

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

_NOTIFY_PATIENCE = 3.0


@attrs.frozen
class Finding:
    """One thing that was checked."""

    check: str
    verdict: Literal["ok", "warning", "failure"]
    text: str
    advice: str = ""


async def doctor(args: argparse.Namespace) -> int:
    """Check everything; exit code 1 if something fails."""
    findings = await _find(args)
    if args.json:
        print_json([attrs.asdict(finding) for finding in findings])
    else:
        for finding in findings:
            print(printable(f"{finding.verdict:<8} {finding.check}: {finding.text}"))
            if finding.advice:
                print(f"{'':<8} → {finding.advice}")
    return 1 if any(finding.verdict == "failure" for finding in findings) else 0


async def _find(args: argparse.Namespace) -> list[Finding]:
    """What there is to find; also that there is nothing to be examined."""
    findings: list[Finding] = []
    try:
        async with open_for(args) as boss:
            async for finding in examine(boss):
                findings.append(finding)  # noqa: PERF401 - what was found before something failed counts
    except SchemaOutOfDate as error:
        findings.append(Finding("connection", "ok", "the server answers"))
        findings.append(_blame_schema(error))
    except DatabaseUnavailable as error:
        advice = "see that the server runs, and that --dsn, TRIOBOSS_DSN or DATABASE_URL is meant"
        findings.append(Finding("connection", "failure", str(error), advice))
    return findings


def _blame_schema(error: SchemaOutOfDate) -> Finding:
    if error.found is None:
        text, advice = f"{error.schema!r} is not installed", "trioboss migrate, or another --schema"
    else:
        text = f"{error.schema!r} is at version {error.found}, not {error.needed}"
        advice = "trioboss migrate" if error.found < error.needed else "upgrade trioboss"
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
    return _blame_schema(SchemaOutOfDate(boss.schema, version, LATEST))


async def _check_notify(boss: Boss) -> Finding:
    began = time.perf_counter()
    with trio.move_on_after(_NOTIFY_PATIENCE):
        await boss.wait_listening()
        if not boss.statistics().listener.polling:
            milliseconds = (time.perf_counter() - began) * 1000
            return Finding("notify", "ok", f"a word on the channel came back within {milliseconds:.0f} ms")
    text = "words on the channel do not come through: workers poll every 2 s"
    return Finding("notify", "warning", text, "connect workers directly, not through a transaction pooler")


def _check_pooler(boss: Boss, pid: int) -> Finding:
    if boss.is_pooled:
        text = "a pooler stands between us and the server"
        return Finding("pooler", "warning", text, "fine for sending; workers should connect directly")
    return Finding("pooler", "ok", f"connected directly, to backend {pid}")


def _check_clock(now: datetime) -> Finding:
    off = abs((datetime.now(UTC) - now).total_seconds())
    text = f"this machine and the database differ by {off:.2f} s"
    if off < 5:
        return Finding("clock", "ok", text)
    return Finding("clock", "warning", text + ": jobs go by the database's clock", "run NTP on both")


def _check_encryption(ssl: bool | None, version: str | None, local: bool) -> Finding:
    if ssl:
        return Finding("encryption", "ok", f"encrypted with {version}")
    if local:
        return Finding("encryption", "ok", "not encrypted, and on this machine")
    return Finding("encryption", "warning", "not encrypted", "use sslmode=verify-full in the dsn")


def _check_durability(synchronous_commit: str, fsync: str) -> Finding:
    if fsync == "off":
        return Finding("durability", "failure", "fsync is off: a crash may lose everything", "set fsync = on")
    return Finding(
        "durability", "ok", f"fsync is on; synchronous_commit is {synchronous_commit} in our sessions"
    )


def _check_vacuum(autovacuum: str, oldest: float) -> Finding:
    if autovacuum != "on":
        return Finding("vacuum", "failure", "autovacuum is off: queues grow for ever", "set autovacuum = on")
    text = f"autovacuum is on; the oldest snapshot is {oldest:.0f} s old"
    if oldest < 300:
        return Finding("vacuum", "ok", text)
    return Finding(
        "vacuum", "warning", text, "find it in pg_stat_activity: nothing can be vacuumed until it ends"
    )


def _check_notify_queue(usage: float) -> Finding:
    text = f"the server's notification queue is {usage:.1%} full"
    if usage < 0.1:
        return Finding("notify queue", "ok", text)
    return Finding("notify queue", "warning", text, "some session listens in an open transaction: end it")


def _check_bloat(table: str, live: int, dead: int) -> Finding:
    text = f"{live} rows, {dead} dead"
    if dead < 100_000 or dead < 2 * live:
        return Finding(f"table {table}", "ok", text)
    return Finding(f"table {table}", "warning", text, f"VACUUM {table}; and see what held it back")
