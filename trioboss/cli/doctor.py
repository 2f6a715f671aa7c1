"""`trioboss doctor`: is everything as it should be, and what to do if not."""

import argparse
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Literal

import attrs
import trio

from trioboss.boss import Boss
from trioboss.cli.output import print_json
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


async def doctor(boss: Boss, args: argparse.Namespace) -> int:
    """Check everything; exit code 1 if something fails."""
    findings = [finding async for finding in examine(boss)]
    if args.json:
        print_json([attrs.asdict(finding) for finding in findings])
    else:
        for finding in findings:
            print(f"{finding.verdict:<8} {finding.check}: {finding.text}")
            if finding.advice:
                print(f"{'':<8} → {finding.advice}")
    return 1 if any(finding.verdict == "failure" for finding in findings) else 0


async def examine(boss: Boss) -> AsyncIterator[Finding]:
    """All findings, one after the other."""
    yield await _check_connection(boss)
    yield await _check_schema(boss)
    yield await _check_notify(boss)
    async with boss.transaction() as conn:
        facts = await (await conn.execute(_FACTS)).fetchone()
        tables = await (await conn.execute(_TABLES, (boss.schema,))).fetchall()
    assert facts is not None
    yield _check_pooler(boss, facts[0])
    yield _check_clock(facts[1])
    yield _check_encryption(facts[2], facts[3], facts[9])
    yield _check_durability(facts[4], facts[5])
    yield _check_vacuum(facts[6], facts[7])
    yield _check_notify_queue(facts[8])
    for table, live, dead in tables:
        yield _check_bloat(table, live, dead)


_FACTS = """
SELECT pg_backend_pid(), clock_timestamp(), s.ssl, s.version, current_setting('synchronous_commit'),
       current_setting('fsync'), current_setting('autovacuum'),
       (SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8 FROM pg_stat_activity
        WHERE backend_xmin IS NOT NULL AND backend_type = 'client backend' AND pid <> pg_backend_pid()),
       pg_notification_queue_usage(),
       coalesce(inet_client_addr() <<= ANY (ARRAY['127.0.0.0/8', '::1/128']::inet[]), true)
FROM (SELECT) one LEFT JOIN pg_stat_ssl s ON s.pid = pg_backend_pid()
"""
_TABLES = """
SELECT relname, n_live_tup, n_dead_tup FROM pg_stat_user_tables
WHERE schemaname = %s AND (relname ~ '^job_common$|^j[0-9a-f]{32}$' OR relname = 'freed_key') ORDER BY relname
"""


async def _check_connection(boss: Boss) -> Finding:
    began = time.perf_counter()
    async with boss.transaction() as conn:
        version = await (await conn.execute("SHOW server_version")).fetchone()
    assert version is not None
    milliseconds = (time.perf_counter() - began) * 1000
    return Finding("connection", "ok", f"Postgres {version[0]}, a transaction takes {milliseconds:.1f} ms")


async def _check_schema(boss: Boss) -> Finding:
    version = await boss.schema_version()
    if version == LATEST:
        return Finding("schema", "ok", f"{boss.schema!r} is at version {version}")
    return Finding(
        "schema", "failure", f"{boss.schema!r} is at version {version}, not {LATEST}", "trioboss migrate"
    )


async def _check_notify(boss: Boss) -> Finding:
    began = time.perf_counter()
    with trio.move_on_after(_NOTIFY_PATIENCE):
        await boss.wait_listening()
        if not boss.statistics().listener.deaf:
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
