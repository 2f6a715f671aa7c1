"""Connects to the server: resolves names without blocking, and tries each host and address in order.

`connect_pgconn` uses the public ``psycopg.pq``, because psycopg's own generator for it changes between patch releases.
"""

import ipaddress
import os

import psycopg
import trio
from psycopg import errors, pq
from psycopg.abc import ConnDict
from psycopg.conninfo import conninfo_attempts, make_conninfo, timeout_from_conninfo
from psycopg.pq.abc import PGconn

from trioboss.postgres.connection.waiting import wait_polling

__all__ = ["connect_pgconn", "open_pgconn"]


async def open_pgconn(parameters: ConnDict) -> PGconn:
    """Connect to the first host that accepts the connection. Each attempt has `connect_timeout` seconds."""
    timeout = timeout_from_conninfo(parameters)
    failures: list[tuple[ConnDict, psycopg.OperationalError]] = []
    for attempt in await _get_attempts(parameters):
        try:
            # libpq ignores connect_timeout in its asynchronous interface, so it is applied here.
            with trio.move_on_after(timeout):
                return await connect_pgconn(make_conninfo("", **attempt))
            raise errors.ConnectionTimeout(f"connection failed: no answer within {timeout} s")
        except psycopg.OperationalError as error:
            failures.append((attempt, error))
    raise _summarize(failures)


async def _get_attempts(parameters: ConnDict) -> list[ConnDict]:
    # The attempts for addresses and Unix sockets are computed without I/O, so most connections need no thread.
    if _needs_resolving(parameters):
        # getaddrinfo blocks and cannot be interrupted: if the caller is cancelled, the thread is left to finish alone.
        return await trio.to_thread.run_sync(conninfo_attempts, parameters, abandon_on_cancel=True)
    return conninfo_attempts(parameters)


def _needs_resolving(parameters: ConnDict) -> bool:
    if parameters.get("hostaddr") or os.environ.get("PGHOSTADDR"):
        return False
    hosts = str(parameters.get("host") or os.environ.get("PGHOST", "")).split(",")
    return any(host and not host.startswith("/") and not _is_address(host) for host in hosts)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _summarize(failures: list[tuple[ConnDict, psycopg.OperationalError]]) -> psycopg.OperationalError:
    last = failures[-1][1]
    if len(failures) == 1:
        return last
    lines = [str(last), "Every host failed:"]
    for attempt, error in failures:
        lines.append(f"- {attempt.get('host')}:{attempt.get('port')} ({attempt.get('hostaddr')}): {error}")
    return type(last)("\n".join(lines))


async def connect_pgconn(conninfo: str) -> PGconn:
    """Open one connection. The conninfo names one host, by address."""
    pgconn = pq.PGconn.connect_start(conninfo.encode())
    try:
        while True:
            if pgconn.status == pq.ConnStatus.BAD:
                raise _make_error(pgconn)
            status = pgconn.connect_poll()
            if status == pq.PollingStatus.OK:
                pgconn.nonblocking = 1  # as psycopg does: a full socket buffer must not block the thread
                return pgconn
            if status == pq.PollingStatus.FAILED:
                raise _make_error(pgconn)
            # libpq may open another socket on the way (next address, TLS refused), so the socket is read each time.
            await wait_polling(pgconn.socket, status)
    except BaseException:
        pgconn.finish()
        raise


def _make_error(pgconn: PGconn) -> psycopg.OperationalError:
    message = pgconn.get_error_message("utf-8").strip()
    if pgconn.needs_password:
        # The only refusal that libpq reports by a flag and not only by a message in the server's language.
        return errors.InvalidPassword(f"connection failed: {message}")
    return errors.OperationalError(f"connection failed: {message}")
