"""Transactions of prepared statements, sent in one flush: the dialogue, without any waiting.

Every transaction is ended by a Sync of its own. Outside a transaction block each one is therefore an implicit
transaction that commits by itself, and a failure in one does not touch the others. Parameters go as text and
the server infers their types; results come back in binary.
"""

from collections.abc import Sequence

import attrs
import psycopg
from psycopg import errors, generators, pq
from psycopg.abc import PQGen
from psycopg.pq.abc import PGconn, PGresult

from trioboss.postgres.waiting import logger
from trioboss.sql import Statement

__all__ = [
    "BoundStatement",
    "Pipeline",
    "PreparedStatements",
    "Results",
    "Transactions",
    "is_stale_statement",
]

_OK = frozenset({pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK, pq.ExecStatus.EMPTY_QUERY})
_SYNC = pq.ExecStatus.PIPELINE_SYNC
_COPYING = frozenset({pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH})
_BINARY = pq.Format.BINARY
# The server compares this much of a prepared statement's name and ignores the rest.
_NAME_LIMIT = 63


@attrs.frozen
class BoundStatement:
    """One statement with the values of its parameters in the server's text format; None is NULL."""

    statement: Statement
    parameters: Sequence[bytes | None] = ()


Transactions = Sequence[Sequence[BoundStatement]]
Results = list[list[PGresult]]


@attrs.define(eq=False)
class PreparedStatements:
    """What one session has prepared: the text of a statement, and the name by which the server knows it.

    The key is the text, because two schemas give their statements the same names. A name is proposed only
    once: what it stood for may still exist on the server after we chose to forget it.
    """

    _names: dict[str, bytes] = attrs.field(factory=dict, init=False)
    _taken: set[bytes] = attrs.field(factory=set, init=False)
    _renamed: int = attrs.field(default=0, init=False)

    def find(self, statement: Statement) -> bytes | None:
        """Return the name under which the server has the statement, if it has it."""
        return self._names.get(statement.text)

    def propose(self, statement: Statement) -> bytes:
        """Return a new name to prepare the statement under: its own, if that is free."""
        name = statement.name.encode()
        if len(name) <= _NAME_LIMIT and name not in self._taken:
            self._taken.add(name)
            return name
        self._renamed += 1
        suffix = b"~%d" % self._renamed
        return name[: _NAME_LIMIT - len(suffix)] + suffix

    def remember(self, statement: Statement, name: bytes) -> None:
        """Note that the server has confirmed the statement under this name."""
        self._names[statement.text] = name

    def forget_all(self) -> None:
        """Prepare everything anew at its next use."""
        self._names.clear()


@attrs.frozen
class _Parse:
    statement: Statement
    name: bytes


_Command = BoundStatement | _Parse | None  # None is the implicit BEGIN


@attrs.define(eq=False)
class Pipeline:
    """One flush under way: `converse` is driven by whoever can wait, the rest tells what became of it."""

    pgconn: PGconn
    transactions: Transactions
    statements: PreparedStatements | None
    """None to use unnamed statements only, for a pooler that moves us from session to session."""
    begin: bytes | None = None
    """The BEGIN that psycopg owes a connection which is not in autocommit; goes ahead of everything."""
    in_block: bool = False
    """Whether all this happens inside a transaction block, where a Sync commits nothing."""
    follow_up: Sequence[BoundStatement] = ()
    """One more transaction, sent along, whose end nobody waits for. `finish` reads what became of it."""
    earlier: "Pipeline | None" = None
    """One whose follow_up is not read yet: that comes before the answers to this one, and need not be waited for."""

    _sent: list[list[_Command]] = attrs.field(factory=list, init=False)
    _steps_only: bool = attrs.field(default=True, init=False)
    """Whether every answer is that of a step."""
    _answers: Results = attrs.field(factory=list, init=False)
    _failed: set[int] = attrs.field(factory=set, init=False)

    def is_single(self) -> bool:
        """Tell whether there is only one transaction, which a cancel request hits or misses."""
        alone = not self.follow_up and self.earlier is None
        return self.in_block or (len(self.transactions) == 1 and alone)

    def is_committed(self) -> bool:
        """Tell whether the first transaction is committed. The others are its follow_up."""
        return bool(self._answers) and 0 not in self._failed and not self.in_block

    def converse(self) -> PQGen[Results]:
        """Send everything, read everything, and only then raise the first error."""
        if self._send_single():
            results = yield from generators.execute(self.pgconn)
            if len(results) == 1 and results[0].status in _OK:
                self._answers.append(results)
                return self._answers
            self._take_answer(results)
        else:
            self._send_all()
            yield from generators.send(self.pgconn)
            if self.earlier is not None:
                yield from self.earlier.read_follow_up()
                self.earlier = None  # else each would keep the one before it, for ever
            while len(self._answers) < len(self.transactions):
                self._take_answer((yield from self._read_transaction()))
            if not self.follow_up:
                self.pgconn.exit_pipeline_mode()
        return self._judge()

    def awaits_follow_up(self) -> bool:
        """Tell whether everything has been read but the follow_up, which `finish` reads."""
        return bool(self.follow_up) and len(self._answers) == len(self.transactions)

    def finish(self) -> PQGen[None]:
        """Read the follow_up, and leave nothing to be read."""
        yield from self.read_follow_up()
        self.pgconn.exit_pipeline_mode()

    def read_follow_up(self) -> PQGen[None]:
        """Read what became of the follow_up. It failed: the log says so, and those who waited for it look again."""
        self._take_answer((yield from self._read_transaction()))
        try:
            self._judge_transaction(self._sent[-1], self._answers[-1])
        except psycopg.Error as error:
            if self.statements is not None and is_stale_statement(error):
                self.statements.forget_all()
            logger.warning("%s failed: %s", self.follow_up[0].statement.name, error)

    def repeatable(self, error: psycopg.Error) -> bool:
        """Tell whether to send the flush again: it failed on a stale statement, and did nothing.

        A prepared statement goes stale when somebody runs DISCARD ALL or DEALLOCATE in the session, or alters
        a table so that the plan would return other columns. To repeat the flush is safe only if none of its
        transactions is committed, since that one would run twice; to repeat only those that failed would
        change their order. Inside a transaction block it is of no use: the error has spoilt the block.
        """
        nothing_happened = len(self._failed) == len(self._answers)
        return not self.in_block and nothing_happened and is_stale_statement(error)

    # -- sending

    def _send_single(self) -> bool:
        # One known statement needs no pipeline mode. It is the most frequent flush by far.
        if self.begin is not None or self.follow_up or self.earlier is not None:
            return False
        if len(self.transactions) != 1 or len(self.transactions[0]) != 1:
            return False
        step = self.transactions[0][0]
        if self.statements is None:
            self._send_step(step, None)
        elif (name := self.statements.find(step.statement)) is not None:
            self._send_step(step, name)
        else:
            return False
        self._sent.append([step])
        return True

    def _send_all(self) -> None:
        self.pgconn.enter_pipeline_mode()
        for steps in (*self.transactions, self.follow_up) if self.follow_up else self.transactions:
            commands: list[_Command] = []
            if self.begin is not None and not self._sent:
                self.pgconn.send_query_params(self.begin, None)
                commands.append(None)
                self._steps_only = False
            self._send_steps(steps, commands)
            self.pgconn.pipeline_sync()
            self._sent.append(commands)

    def _send_steps(self, steps: Sequence[BoundStatement], commands: list[_Command]) -> None:
        # A Parse serves its own transaction only: another one must not depend on whether this one got so far.
        parsed: dict[str, bytes] = {}
        for step in steps:
            name: bytes | None = None
            if self.statements is not None:
                name = self.statements.find(step.statement) or parsed.get(step.statement.text)
                if name is None:
                    name = parsed[step.statement.text] = self.statements.propose(step.statement)
                    self.pgconn.send_prepare(name, step.statement.text.encode())
                    commands.append(_Parse(step.statement, name))
                    self._steps_only = False
            self._send_step(step, name)
            commands.append(step)

    def _send_step(self, step: BoundStatement, name: bytes | None) -> None:
        if name is not None:
            self.pgconn.send_query_prepared(name, step.parameters, None, _BINARY)
        else:
            text = step.statement.text.encode()
            self.pgconn.send_query_params(text, step.parameters, None, None, _BINARY)

    # -- reading

    def _read_transaction(self) -> PQGen[list[PGresult]]:
        results: list[PGresult] = []
        while True:
            try:
                batch = yield from generators.fetch_many(self.pgconn)
            except psycopg.OperationalError:
                # The server's last words say more than the closed socket.
                for result in results:
                    if result.status not in _OK:
                        raise self._error(result, None) from None
                raise
            if not batch or batch[-1].status in _COPYING:
                # libpq answers every further question with the same, for ever.
                raise errors.NotSupportedError("run() cannot be used for COPY")
            if batch[-1].status == _SYNC:
                return results
            results += batch

    def _take_answer(self, results: list[PGresult]) -> None:
        # One answer a command, and one more if the implicit COMMIT fails.
        for result in results:
            if result.status not in _OK:
                self._failed.add(len(self._answers))
        if not self._steps_only:
            self._remember(self._sent[len(self._answers)], results)
        self._answers.append(results)

    def _remember(self, commands: list[_Command], results: list[PGresult]) -> None:
        for command, result in zip(commands, results, strict=False):
            if isinstance(command, _Parse) and result.status in _OK and self.statements is not None:
                self.statements.remember(command.statement, command.name)

    def _judge(self) -> Results:
        if self._steps_only and not self._failed:
            return list(self._answers)  # the follow_up's comes later, and is nobody's business
        answered = list(zip(self._sent, self._answers, strict=False))
        for commands, results in answered:
            self._judge_transaction(commands, results)
        return [
            [
                result
                for command, result in zip(commands, results, strict=True)
                if isinstance(command, BoundStatement)
            ]
            for commands, results in answered
        ]

    def _judge_transaction(self, commands: list[_Command], results: list[PGresult]) -> None:
        for place, result in enumerate(results):
            if result.status not in _OK:
                raise self._error(result, commands[place] if place < len(commands) else None)

    def _error(self, result: PGresult, command: _Command) -> psycopg.Error:
        if result.status != pq.ExecStatus.FATAL_ERROR:
            return errors.InterfaceError(f"unexpected answer {pq.ExecStatus(result.status).name}")
        error = errors.error_from_result(result)
        if command is not None:
            error.add_note(f"in statement {command.statement.name!r}")
        return error


def is_stale_statement(error: psycopg.Error) -> bool:
    """Tell whether a prepared statement is gone, or no longer fits the tables it reads."""
    if isinstance(error, errors.InvalidSqlStatementName):
        return True
    # Postgres has no SQLSTATE of its own for "cached plan must not change result type", and the text is
    # translated, but the name of the function that says it is not.
    return (
        isinstance(error, errors.FeatureNotSupported)
        and error.diag.source_function == "RevalidateCachedQuery"
    )
