"""Transactions of prepared statements in one round trip, and the values in their results, without any waiting.

Each transaction ends with a Sync of its own. Outside a transaction block each is therefore an implicit transaction that
commits by itself, and an error in one does not affect the others. Parameters are sent as text, long arrays as
binary, and the server infers their types; results come back in the binary format.

A method whose name ends in ``_gen`` is a generator in psycopg's sense: it yields what the socket has to be ready for,
and never waits. `TrioConnection.run_gen` runs it.
"""

import json
import threading
from collections.abc import Sequence
from typing import Any, TypeAlias

import attrs
import psycopg
from psycopg import errors, generators, pq
from psycopg.abc import PQGen
from psycopg.adapt import AdaptersMap, Loader, Transformer
from psycopg.pq.abc import PGconn, PGresult

from trioboss.model.payload import Unreadable
from trioboss.postgres.errors import is_stale_statement, log_failed_follow_up
from trioboss.postgres.wire.binary import formats_of
from trioboss.sql import Statement

__all__ = [
    "BoundStatement",
    "PGresult",
    "Pipeline",
    "PreparedStatements",
    "Results",
    "Transactions",
    "read_row",
    "read_rows",
]

_OK = frozenset({pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK, pq.ExecStatus.EMPTY_QUERY})
_SYNC = pq.ExecStatus.PIPELINE_SYNC
_COPYING = frozenset({pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH})
_BINARY = pq.Format.BINARY
# NAMEDATALEN - 1: the server truncates longer names, and two of them could become the same one.
_NAME_LIMIT = 63


# -- statements


@attrs.frozen
class BoundStatement:
    """One statement with the values of its parameters: text, or a `BinaryParameter`; None is NULL."""

    statement: Statement
    parameters: Sequence[bytes | None] = ()


Transactions: TypeAlias = Sequence[Sequence[BoundStatement]]
Results: TypeAlias = list[list[PGresult]]  # one list for each transaction, one result for each statement


@attrs.define(eq=False)
class PreparedStatements:
    """The statements that one session has prepared, each with its name on the server.

    The key is the text of a statement, because two schemas use the same names for their statements. A name is never
    used twice in a session: after `clear` the server may still have a statement of that name.
    """

    _names: dict[str, bytes] = attrs.field(factory=dict, init=False)
    _used: set[bytes] = attrs.field(factory=set, init=False)
    _suffix: int = attrs.field(default=0, init=False)

    def get_name(self, statement: Statement) -> bytes | None:
        """Return the name under which the server has the statement, or None if it is not prepared."""
        return self._names.get(statement.text)

    def new_name(self, statement: Statement) -> bytes:
        """Return an unused name to prepare the statement under: the statement's own one, or that with a number."""
        name = statement.name.encode()
        if len(name) <= _NAME_LIMIT and name not in self._used:
            self._used.add(name)
            return name
        self._suffix += 1
        suffix = b"~%d" % self._suffix
        return name[: _NAME_LIMIT - len(suffix)] + suffix

    def add(self, statement: Statement, name: bytes) -> None:
        """Record that the server has confirmed the statement under this name."""
        self._names[statement.text] = name

    def clear(self) -> None:
        """Have each statement prepared again at its next use."""
        self._names.clear()


# -- pipelines


@attrs.frozen
class _Parse:
    statement: Statement
    name: bytes


_Command = BoundStatement | _Parse | None  # None is the implicit BEGIN


@attrs.define(eq=False)
class Pipeline:
    """One round trip of transactions, optionally with a follow-up transaction that is not waited for.

    `execute_gen` sends everything and reads the results of `transactions`. If there is a `follow_up`, its result stays
    unread, and either `finish_gen` reads it or the next pipeline on the connection does, as its `previous` one.
    """

    pgconn: PGconn
    transactions: Transactions
    prepared: PreparedStatements | None
    """None to use unnamed statements only, for a pooler that assigns another session to each transaction."""
    begin: bytes | None = None
    """The BEGIN that psycopg would send now on a connection without autocommit. It is sent before everything else."""
    in_block: bool = False
    """Whether all this happens inside a transaction block, where a Sync commits nothing."""
    follow_up: Sequence[BoundStatement] = ()
    previous: "Pipeline | None" = None
    """The pipeline before this one, if its follow-up is still unread: the results of that come before ours."""

    _sent: list[list[_Command]] = attrs.field(factory=list, init=False)
    _received: Results = attrs.field(factory=list, init=False)
    _failed: set[int] = attrs.field(factory=set, init=False)
    """The indexes of the transactions that failed."""
    _statements_only: bool = attrs.field(default=True, init=False)
    """Whether no Parse and no BEGIN was sent, so that results and statements correspond one to one."""

    # -- generators

    def execute_gen(self) -> PQGen[Results]:
        """Send everything, read all results but the follow-up's, and only then raise the first error."""
        if self._send_single():
            results = yield from generators.execute(self.pgconn)
            if len(results) == 1 and results[0].status in _OK:
                self._received.append(results)
                return self._received
            # An error, as a rule: `_collect_results` raises it.
            self._add_results(results)
        else:
            self._send_all()
            yield from generators.send(self.pgconn)
            if self.previous is not None:
                yield from self.previous.read_follow_up_gen()
                self.previous = None  # otherwise each pipeline would keep all earlier ones in memory
            while len(self._received) < len(self.transactions):
                self._add_results((yield from self._read_transaction_gen()))
            # libpq refuses to leave pipeline mode while a result is unread: a follow-up keeps the connection in it.
            if not self.follow_up:
                self.pgconn.exit_pipeline_mode()
        return self._collect_results()

    def finish_gen(self) -> PQGen[None]:
        """Read the follow-up, and leave pipeline mode."""
        yield from self.read_follow_up_gen()
        self.pgconn.exit_pipeline_mode()

    def read_follow_up_gen(self) -> PQGen[None]:
        """Read the follow-up's result. An error is only logged: the caller of `execute_gen` has its results already."""
        self._add_results((yield from self._read_transaction_gen()))
        try:
            self._raise_error(self._sent[-1], self._received[-1])
        except psycopg.Error as error:
            # A stale statement is not repeated here, but the next follow-up must not fail on it as well.
            if self.prepared is not None and is_stale_statement(error):
                self.prepared.clear()
            log_failed_follow_up(self.follow_up[0].statement.name, error)

    # -- progress, for the connection that runs the generators

    def is_single(self) -> bool:
        """Tell whether only one transaction is in flight, so that a cancel request can hit no other one."""
        alone = not self.follow_up and self.previous is None
        return self.in_block or (len(self.transactions) == 1 and alone)

    def is_committed(self) -> bool:
        """Tell whether the first transaction is committed. The others only follow up on it."""
        return bool(self._received) and 0 not in self._failed and not self.in_block

    def has_unread_follow_up(self) -> bool:
        """Tell whether everything has been read but the follow-up."""
        return bool(self.follow_up) and len(self._received) == len(self.transactions)

    def is_repeatable(self, error: psycopg.Error) -> bool:
        """Tell whether the pipeline may be sent again: it failed on a stale statement, and had no effect.

        A prepared statement goes stale when DISCARD ALL or DEALLOCATE is run in the session, or when a table is altered
        so that the plan would return other columns. A repetition is safe only if no transaction is committed, since
        that one would run twice; repeating only the failed ones would change their order. Inside a transaction block it
        is useless: the error has aborted the block.
        """
        had_no_effect = len(self._failed) == len(self._received)
        return not self.in_block and had_no_effect and is_stale_statement(error)

    # -- sending

    def _send_single(self) -> bool:
        # By far the most frequent case: one statement that is prepared already. It works without pipeline mode, which
        # costs 10 % more CPU for it (measured with `Pool.run`).
        if self.begin is not None or self.follow_up or self.previous is not None:
            return False
        if len(self.transactions) != 1 or len(self.transactions[0]) != 1:
            return False
        bound = self.transactions[0][0]
        if self.prepared is None:
            self._send_statement(bound, None)
        elif (name := self.prepared.get_name(bound.statement)) is not None:
            self._send_statement(bound, name)
        else:
            return False
        self._sent.append([bound])
        return True

    def _send_all(self) -> None:
        self.pgconn.enter_pipeline_mode()
        for transaction in (*self.transactions, self.follow_up) if self.follow_up else self.transactions:
            commands: list[_Command] = []
            if self.begin is not None and not self._sent:
                self.pgconn.send_query_params(self.begin, None)
                commands.append(None)
                self._statements_only = False
            self._send_transaction(transaction, commands)
            self.pgconn.pipeline_sync()
            self._sent.append(commands)

    def _send_transaction(self, transaction: Sequence[BoundStatement], commands: list[_Command]) -> None:
        # A Parse is used within its own transaction only. If an earlier statement of that transaction fails, the server
        # skips the Parse, and a later transaction that relied on it would fail as well.
        parsed: dict[str, bytes] = {}
        for bound in transaction:
            name: bytes | None = None
            if self.prepared is not None:
                name = self.prepared.get_name(bound.statement) or parsed.get(bound.statement.text)
                if name is None:
                    name = parsed[bound.statement.text] = self.prepared.new_name(bound.statement)
                    self.pgconn.send_prepare(name, bound.statement.text.encode())
                    commands.append(_Parse(bound.statement, name))
                    self._statements_only = False
            self._send_statement(bound, name)
            commands.append(bound)

    def _send_statement(self, bound: BoundStatement, name: bytes | None) -> None:
        formats = formats_of(bound.parameters)
        if name is not None:
            self.pgconn.send_query_prepared(name, bound.parameters, formats, _BINARY)
        else:
            text = bound.statement.text.encode()
            self.pgconn.send_query_params(text, bound.parameters, None, formats, _BINARY)

    # -- reading

    def _read_transaction_gen(self) -> PQGen[list[PGresult]]:
        results: list[PGresult] = []
        while True:
            try:
                fetched = yield from generators.fetch_many(self.pgconn)
            except psycopg.OperationalError:
                # If the server sent a FATAL error before it closed the connection, that error names the cause.
                for result in results:
                    if result.status not in _OK:
                        raise self._make_error(result, None) from None
                raise
            if not fetched or fetched[-1].status in _COPYING:
                # libpq would return the same again for ever.
                raise errors.NotSupportedError("run() cannot be used for COPY")
            if fetched[-1].status == _SYNC:
                return results
            results += fetched

    def _add_results(self, results: list[PGresult]) -> None:
        # There is one result for each command, and one more if the implicit COMMIT fails.
        for result in results:
            if result.status not in _OK:
                self._failed.add(len(self._received))
        if not self._statements_only:
            self._record_prepared(self._sent[len(self._received)], results)
        self._received.append(results)

    def _record_prepared(self, commands: list[_Command], results: list[PGresult]) -> None:
        # Recorded only when the server has confirmed the Parse: the transaction may have failed before it.
        for command, result in zip(commands, results, strict=False):
            if isinstance(command, _Parse) and result.status in _OK and self.prepared is not None:
                self.prepared.add(command.statement, command.name)

    def _collect_results(self) -> Results:
        """Return the results of the statements, without those of Parse and BEGIN; raise the first error if any."""
        if self._statements_only and not self._failed:
            return list(
                self._received
            )  # a copy, because the follow-up's results are appended to the original later
        answered = list(zip(self._sent, self._received, strict=False))
        for commands, results in answered:
            self._raise_error(commands, results)
        return [
            [
                result
                for command, result in zip(commands, results, strict=True)
                if isinstance(command, BoundStatement)
            ]
            for commands, results in answered
        ]

    def _raise_error(self, commands: list[_Command], results: list[PGresult]) -> None:
        for index, result in enumerate(results):
            if result.status not in _OK:
                raise self._make_error(result, commands[index] if index < len(commands) else None)

    def _make_error(self, result: PGresult, command: _Command) -> psycopg.Error:
        if result.status != pq.ExecStatus.FATAL_ERROR:
            return errors.InterfaceError(f"unexpected result {pq.ExecStatus(result.status).name}")
        error = errors.error_from_result(result)
        if command is not None:
            error.add_note(f"in statement {command.statement.name!r}")
        return error


# -- results: Python values from the binary format, read without a connection. Timestamps are in UTC.

_decode = json.JSONDecoder().raw_decode


class _JsonbLoader(Loader):
    """Loads jsonb, which is a version byte (1) and then UTF-8 without surrounding white space.

    json.loads, which psycopg uses, first detects the encoding and skips white space.
    """

    format = _BINARY

    def load(self, data: Any) -> Any:
        try:
            return _decode(str(data, "utf-8"), 1)[0]
        except (ValueError, RecursionError) as error:
            # One value that Python cannot represent (a number with 5,000 digits, 10,000 nested lists) must not make the
            # other rows of the result unreadable.
            return Unreadable(str(error))


def _make_adapters() -> AdaptersMap:
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_loader("jsonb", _JsonbLoader)
    return adapters


class _Context:
    """The part of a connection that a Transformer uses when there is no connection: the adapters."""

    adapters = _make_adapters()
    connection = None


_CONTEXT = _Context()


class _Reader(threading.local):
    """One reader for each thread, because a Transformer works on one result at a time. It caches its loaders."""

    def __init__(self) -> None:
        self._transformer = Transformer(_CONTEXT)

    def read(self, result: PGresult, first: int, end: int) -> list[tuple[Any, ...]]:
        self._transformer.set_pgresult(result)
        try:
            return self._transformer.load_rows(first, end, tuple)
        finally:
            self._transformer.set_pgresult(None)


_READER = _Reader()


def read_row(result: PGresult, number: int) -> tuple[Any, ...]:
    """Return one row of a result."""
    return _read(result, number, number + 1)[0]


def read_rows(result: PGresult, *, after: int = -1) -> list[tuple[Any, ...]]:
    """Return the rows of a result as tuples: all of them, or those after row number ``after``."""
    return _read(result, after + 1, result.ntuples)


def _read(result: PGresult, first: int, end: int) -> list[tuple[Any, ...]]:
    return [] if first == end else _READER.read(result, first, end)
