"""Blocking connections: opens our own, and runs our transactions on any, through psycopg's public interface.

The rule, also on a caller's connection: if the connection is in a transaction, or psycopg would open one because
autocommit is off, all statements join that transaction and are committed or rolled back with it. In autocommit, outside
a transaction block, each of our transactions commits by itself, in order, and the first failure ends the run. The
connection's autocommit, row factory, adapters and pipeline stay as they are.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, TypeAlias

import attrs
import psycopg
from psycopg import RawCursor, pq
from psycopg.adapt import Dumper
from psycopg.conninfo import make_conninfo
from psycopg.pq.abc import PGresult
from psycopg.rows import tuple_row

from trioboss.errors import UsageError
from trioboss.postgres.dsn import check_database_encoding, session_parameters
from trioboss.postgres.errors import is_stale_statement, translate_errors, unavailable
from trioboss.postgres.operation import Copy, Script
from trioboss.postgres.settings import session_statement
from trioboss.postgres.wire import BinaryParameter, BoundStatement, Results, Transactions

__all__ = [
    "BlockingConnection",
    "ConnectBlocking",
    "RawValue",
    "check_client_encoding",
    "copy_in_blocking",
    "ensure_transaction_blocking",
    "get_result",
    "is_connected",
    "is_pooled",
    "open_blocking",
    "opens_implicitly",
    "raw_values",
    "register_raw_value",
    "run_blocking",
    "run_in_savepoint_blocking",
    "run_script_blocking",
]

BlockingConnection: TypeAlias = psycopg.Connection[Any]
ConnectBlocking: TypeAlias = Callable[..., BlockingConnection]
"""Opens a connection: gets the parameters as text, and further arguments, both for ``psycopg.Connection.connect``."""
_EitherConnection: TypeAlias = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]
_EitherCursor: TypeAlias = psycopg.RawCursor[Any] | psycopg.AsyncRawCursor[Any]


# -- sessions of our own


def is_pooled(connection: BlockingConnection) -> bool:
    """Whether nothing may be prepared or set on a connection of ours: it goes through a transaction pooler, so that
    each transaction has another session. A caller who opens it without preparation says the same.
    """
    return connection.prepare_threshold is None


def open_blocking(
    dsn: str, settings: Mapping[str, str] | None = None, connect: ConnectBlocking | None = None
) -> BlockingConnection:
    """Open a session in autocommit with our settings. The caller closes it.

    ``connect`` opens it instead of psycopg.Connection.connect.
    """
    parameters = session_parameters(dsn)
    opens = psycopg.Connection.connect if connect is None else partial(_connect_by, connect)
    try:
        connection: BlockingConnection = opens(make_conninfo("", **parameters), autocommit=True)
    except psycopg.OperationalError as error:
        raise unavailable(error) from error
    try:
        check_database_encoding(connection.info)
        with translate_errors(connection):
            # A pooler gives its clients process ids of its own: see is_behind_pooler.
            cursor = connection.cursor(row_factory=tuple_row)  # a caller's may have another
            backend = cursor.execute("SELECT pg_backend_pid()", prepare=False).fetchone()
            if backend is not None and backend[0] != connection.info.backend_pid:
                connection.prepare_threshold = None
            pooled = is_pooled(connection)
            statement = session_statement(parameters, {} if pooled else settings or {}, pooled=pooled)
            run_blocking(connection, [[statement]], prepare=False)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_by(connect: ConnectBlocking, conninfo: str, **arguments: Any) -> BlockingConnection:
    try:
        connection = connect(conninfo, **arguments)
    except psycopg.OperationalError:
        raise
    except psycopg.Error as error:
        problem = str(error).strip()
        raise UsageError(f"connect: {problem}: connect by psycopg.Connection.connect") from error
    except Exception as error:
        raise psycopg.OperationalError(f"connect: {type(error).__name__}: {error}") from error
    if not isinstance(connection, psycopg.Connection):
        raise UsageError(f"connect: returned {type(connection).__name__}, not a psycopg.Connection")
    if not connection.autocommit:
        connection.close()
        raise UsageError(
            "connect: the connection is not in autocommit: pass the arguments on, or autocommit=True"
        )
    return connection


def is_connected(connection: BlockingConnection) -> bool:
    """Tell, without a round trip, whether the connection is open here and at the server."""
    try:
        # The first call may read the error with which the server ended the session, the second finds the end of file.
        connection.pgconn.consume_input()
        connection.pgconn.consume_input()
    except psycopg.OperationalError:
        connection.close()
    return not connection.closed


# -- parameters and results


@attrs.frozen
class RawValue:
    """A parameter in one of the server's formats, of the type that the server infers."""

    value: bytes


class _RawBinaryValue(RawValue):
    pass


class _RawDumper(Dumper):
    oid = 0  # unknown: the server infers the type

    def dump(self, obj: RawValue) -> bytes:
        return obj.value


class _RawBinaryDumper(_RawDumper):
    format = pq.Format.BINARY


def raw_values(bound: BoundStatement) -> list[RawValue | None]:
    """Wrap a statement's parameters, so that psycopg sends them unchanged."""
    return [None if value is None else _wrap(value) for value in bound.parameters]


def _wrap(value: bytes) -> RawValue:
    return _RawBinaryValue(value) if isinstance(value, BinaryParameter) else RawValue(value)


def register_raw_value(cursor: _EitherCursor) -> None:
    """Let one cursor, and not its connection, accept wrapped parameters."""
    cursor.adapters.register_dumper(RawValue, _RawDumper)
    cursor.adapters.register_dumper(_RawBinaryValue, _RawBinaryDumper)


def get_result(cursor: _EitherCursor) -> PGresult:
    """Return the result of a statement. In a pipeline there is one only after its end."""
    assert cursor.pgresult is not None
    return cursor.pgresult


def check_client_encoding(connection: _EitherConnection) -> None:
    """Raise UsageError for a caller's connection on which our parameters, which are UTF-8, would be misread."""
    encoding = connection.info.parameter_status("client_encoding")
    if encoding not in ("UTF8", "SQL_ASCII"):
        raise UsageError(f"conn: its client_encoding is {encoding}: trioboss needs UTF8")


# -- transactions


def opens_implicitly(connection: _EitherConnection) -> bool:
    """Tell whether psycopg will begin a transaction with the next statement, and leave its end to the caller."""
    return not connection.autocommit and connection.info.transaction_status == pq.TransactionStatus.IDLE


@contextmanager
def ensure_transaction_blocking(connection: BlockingConnection) -> Iterator[None]:
    """A block whose requests take effect all or not at all: see `caller.ensure_transaction`."""
    # psycopg's transaction() would commit at the end of the block if it had to begin the transaction itself, but a
    # caller without autocommit expects to commit.
    with nullcontext() if opens_implicitly(connection) else connection.transaction():
        yield


def run_blocking(connection: BlockingConnection, transactions: Transactions, *, prepare: bool) -> Results:
    """Run the transactions; return the results of their statements in binary format, one list for each transaction.

    ``prepare`` is for our own connections: on a caller's we must not fill psycopg's cache of prepared statements.
    """
    check_client_encoding(connection)
    return [_run_transaction(connection, statements, prepare=prepare) for statements in transactions]


def _run_transaction(
    connection: BlockingConnection, statements: Sequence[BoundStatement], *, prepare: bool
) -> list[PGresult]:
    idle = connection.info.transaction_status == pq.TransactionStatus.IDLE
    repeatable = prepare and idle and connection.autocommit
    try:
        return _run_statements(connection, statements, prepare=prepare)
    except psycopg.Error as error:
        if not repeatable or not is_stale_statement(error):
            raise
    # The transaction was rolled back, so it may be repeated. DEALLOCATE ALL makes psycopg empty its own cache.
    connection.execute("DEALLOCATE ALL")
    return _run_statements(connection, statements, prepare=prepare)


def _run_statements(
    connection: BlockingConnection, statements: Sequence[BoundStatement], *, prepare: bool
) -> list[PGresult]:
    if len(statements) == 1 and not connection.pgconn.pipeline_status:
        return [get_result(_execute(connection, statements[0], prepare=prepare))]
    # A pipeline with one Sync: one round trip, and in autocommit one implicit transaction.
    try:
        with _own_pipeline(), connection.pipeline():
            cursors = [_execute(connection, bound, prepare=prepare) for bound in statements]
    except psycopg.OperationalError as error:
        # If the connection breaks inside the pipeline, psycopg raises that it cannot leave the pipeline; the error that
        # broke it is the context. Our own connection is then useless and is closed. A caller's is left to the caller,
        # and may be in a pipeline that the caller opened.
        is_stuck = prepare and connection.pgconn.pipeline_status
        if not is_stuck or not isinstance(error.__context__, psycopg.Error):
            raise
        connection.close()
        raise error.__context__ from None
    return [get_result(cursor) for cursor in cursors]


_here = threading.local()


class _OwnPipelineFilter(logging.Filter):
    """Drops what psycopg logs when a pipeline of ours ends with an error: the error itself is raised."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged."""
        return not (getattr(_here, "in_pipeline", False) and "error ignored terminating" in str(record.msg))


logging.getLogger("psycopg").addFilter(_OwnPipelineFilter())


@contextmanager
def _own_pipeline() -> Iterator[None]:
    _here.in_pipeline = True
    try:
        yield
    finally:
        _here.in_pipeline = False


def _execute(
    connection: BlockingConnection, bound: BoundStatement, *, prepare: bool
) -> psycopg.RawCursor[Any]:
    cursor = RawCursor(connection)  # our statements have $1 placeholders
    register_raw_value(cursor)
    return cursor.execute(bound.statement.text.encode(), raw_values(bound), prepare=prepare, binary=True)


def run_in_savepoint_blocking(
    connection: BlockingConnection, transactions: Transactions, *, prepare: bool
) -> Results:
    """Run the transactions; if they fail, roll back what they did and nothing else."""
    opens = opens_implicitly(connection)
    try:
        with ensure_transaction_blocking(connection):
            return run_blocking(connection, transactions, prepare=prepare)
    except psycopg.Error:
        if opens:
            connection.rollback()
        raise


def copy_in_blocking(connection: BlockingConnection, request: Copy) -> Results:
    """Run a COPY FROM STDIN."""
    with connection.cursor().copy(request.statement.encode()) as copy:
        for block in request.blocks:
            copy.write(block)
    return []


def run_script_blocking(connection: BlockingConnection, request: Script) -> Results:
    """Run several statements without parameters."""
    connection.execute(request.text.encode())
    return []
