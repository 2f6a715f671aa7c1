"""Opens a libpq connection: resolves names without blocking, and tries each host and address in turn."""

import ipaddress
import os

import psycopg
import trio
from psycopg import errors
from psycopg.abc import ConnDict
from psycopg.conninfo import conninfo_attempts, make_conninfo, timeout_from_conninfo
from psycopg.pq.abc import PGconn

from trioboss.postgres.waiting import connect_pgconn

__all__ = ["open_pgconn"]


async def open_pgconn(params: ConnDict) -> PGconn:
    """Connect to the first host that accepts us. Each attempt has `connect_timeout` seconds."""
    timeout = timeout_from_conninfo(params)
    failures: list[tuple[ConnDict, psycopg.OperationalError]] = []
    for attempt in await _attempts(params):
        try:
            with trio.move_on_after(timeout):
                return await connect_pgconn(make_conninfo("", **attempt))
            raise errors.ConnectionTimeout(f"connection failed: no answer within {timeout} s")
        except psycopg.OperationalError as error:
            failures.append((attempt, error))
    raise _summary(failures)


async def _attempts(params: ConnDict) -> list[ConnDict]:
    if _needs_resolving(params):
        # A name server may take its time; the thread is left behind if the caller has no more patience.
        return await trio.to_thread.run_sync(conninfo_attempts, params, abandon_on_cancel=True)
    return conninfo_attempts(params)


def _needs_resolving(params: ConnDict) -> bool:
    if params.get("hostaddr") or os.environ.get("PGHOSTADDR"):
        return False
    hosts = str(params.get("host") or os.environ.get("PGHOST", "")).split(",")
    return any(host and not host.startswith("/") and not _is_address(host) for host in hosts)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _summary(failures: list[tuple[ConnDict, psycopg.OperationalError]]) -> psycopg.OperationalError:
    last = failures[-1][1]
    if len(failures) == 1:
        return last
    lines = [str(last), "Every host failed:"]
    for attempt, error in failures:
        lines.append(f"- {attempt.get('host')}:{attempt.get('port')} ({attempt.get('hostaddr')}): {error}")
    return type(last)("\n".join(lines))
