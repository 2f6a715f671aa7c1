"""Runs the same transactions on a blocking connection of psycopg's, through its public interface.

The rule, also on a caller's connection: if the connection is in a transaction, or psycopg would open one
because autocommit is off, everything joins that transaction and commits or vanishes with it. In autocommit,
outside a transaction block, each transaction commits by itself, in its order, and the first failure ends the
run. The connection's autocommit, row factory, adapters and pipeline stay as they are.
"""

from collections.abc import Sequence
from typing import Any

import attrs
import psycopg
from psycopg import RawCursor, pq
from psycopg.adapt import Dumper
from psycopg.pq.abc import PGresult

from trioboss.errors import UsageError
from trioboss.postgres.wire import BoundStatement, Results, Transactions, is_stale_statement

__all__ = ["TextValue", "check_encoding", "finished", "register_text", "run_blocking", "text_values"]


@attrs.frozen
class TextValue:
    """A parameter in the server's text format, of the type that the server infers."""

    value: bytes


class _TextValueDumper(Dumper):
    oid = 0

    def dump(self, obj: TextValue) -> bytes:
        return obj.value


def text_values(step: BoundStatement) -> list[TextValue | None]:
    """Wrap a step's parameters, so that psycopg sends them as they are."""
    return [None if value is None else TextValue(value) for value in step.parameters]


def register_text(cursor: psycopg.RawCursor[Any] | psycopg.AsyncRawCursor[Any]) -> None:
    """Teach one cursor, and not its connection, to send wrapped parameters."""
    cursor.adapters.register_dumper(TextValue, _TextValueDumper)


def finished(cursor: psycopg.RawCursor[Any] | psycopg.AsyncRawCursor[Any]) -> PGresult:
    """Return what a statement returned, once its pipeline is synchronised."""
    assert cursor.pgresult is not None
    return cursor.pgresult


def check_encoding(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Refuse a caller's connection on which our parameters, which are UTF-8, would mean something else."""
    encoding = connection.info.parameter_status("client_encoding")
    if encoding not in ("UTF8", "SQL_ASCII"):
        raise UsageError(f"conn: its client_encoding is {encoding}: trioboss needs UTF8")


def run_blocking(
    connection: psycopg.Connection[Any], transactions: Transactions, *, prepare: bool
) -> Results:
    """Run the transactions; return the results of their steps, in binary format, one list a transaction.

    `prepare` is for a connection of our own; a caller's cache of statements is none of our business.
    """
    check_encoding(connection)
    return [_run_transaction(connection, steps, prepare=prepare) for steps in transactions]


def _run_transaction(
    connection: psycopg.Connection[Any], steps: Sequence[BoundStatement], *, prepare: bool
) -> list[PGresult]:
    idle = connection.info.transaction_status == pq.TransactionStatus.IDLE
    repeatable = prepare and idle and connection.autocommit
    try:
        return _run_steps(connection, steps, prepare=prepare)
    except psycopg.Error as error:
        if not repeatable or not is_stale_statement(error):
            raise
    # Nothing of this transaction happened. psycopg notices that its statements are gone.
    connection.execute("DEALLOCATE ALL")
    return _run_steps(connection, steps, prepare=prepare)


def _run_steps(
    connection: psycopg.Connection[Any], steps: Sequence[BoundStatement], *, prepare: bool
) -> list[PGresult]:
    if len(steps) == 1 and not connection.pgconn.pipeline_status:
        return [finished(_execute(connection, steps[0], prepare=prepare))]
    # A pipeline with one Sync: one round trip, and in autocommit one implicit transaction.
    try:
        with connection.pipeline():
            cursors = [_execute(connection, step, prepare=prepare) for step in steps]
    except psycopg.OperationalError as error:
        # What broke a pipeline of ours is hidden behind the complaint that it cannot be left, and nothing else goes
        # through. A caller's connection is the caller's to close, and may be in a pipeline of its own.
        is_stuck = prepare and connection.pgconn.pipeline_status
        if not is_stuck or not isinstance(error.__context__, psycopg.Error):
            raise
        connection.close()
        raise error.__context__ from None
    return [finished(cursor) for cursor in cursors]


def _execute(
    connection: psycopg.Connection[Any], step: BoundStatement, *, prepare: bool
) -> psycopg.RawCursor[Any]:
    cursor = RawCursor(connection)
    register_text(cursor)
    return cursor.execute(step.statement.text.encode(), text_values(step), prepare=prepare, binary=True)
