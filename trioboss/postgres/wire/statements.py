"""A statement with its parameters, and the names under which a session has prepared its statements."""

from collections.abc import Sequence
from typing import TypeAlias

import attrs
from psycopg.pq.abc import PGresult

from trioboss.sql import Statement

__all__ = ["BoundStatement", "PreparedStatements", "Results", "Transactions"]

_NAME_LIMIT = (
    63  # NAMEDATALEN - 1: the server truncates longer names, and two of them could become the same one
)


@attrs.frozen
class BoundStatement:
    """One statement with the values of its parameters, in the server's text format; None is NULL."""

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
