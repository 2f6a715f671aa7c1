"""How a verb talks to the database without waiting for it.

A verb is a generator: it yields what to run, is sent the results, and returns its answer. Whoever drives it
brings the connection and decides how to wait, so each verb is written once, for trio and for blocking code.
"""

from collections.abc import Generator, Iterator
from typing import TypeAlias, TypeVar

import attrs

from trioboss.postgres.wire import BoundStatement, Results

__all__ = ["Batch", "Copy", "InParallel", "InSavepoint", "OnOwnConnection", "Operation", "Request", "Script"]

T = TypeVar("T")


@attrs.frozen(init=False)
class Batch:
    """Transactions to run, in one round trip. In the caller's transaction they all become part of it.

    The ``follow_up`` is one more, for which our own connections do not wait: nothing is known of how it ended.
    Alone, it follows the flush before it, which is over and done.
    """

    transactions: tuple[tuple[BoundStatement, ...], ...]
    follow_up: tuple[BoundStatement, ...]
    patient: bool
    """Wait for the end of the follow_up all the same: there is time, and the connection is then at rest."""

    def __init__(
        self,
        *transactions: tuple[BoundStatement, ...],
        follow_up: tuple[BoundStatement, ...] = (),
        patient: bool = False,
    ) -> None:
        self.__attrs_init__(tuple(filter(None, transactions)), follow_up, patient)

    @property
    def all(self) -> tuple[tuple[BoundStatement, ...], ...]:
        """The transactions and the follow_up."""
        return (*self.transactions, self.follow_up) if self.follow_up else self.transactions


@attrs.frozen
class OnOwnConnection:
    """A flush for one of our own connections, even if the verb runs in the caller's transaction."""

    flush: Batch


@attrs.frozen
class InSavepoint:
    """A flush that may fail and be repeated: in the caller's transaction its failure undoes nothing else."""

    flush: Batch


@attrs.frozen
class InParallel:
    """Flushes that do not depend on each other: at the same time on connections of our own, in turn on a caller's.

    Answered with the results of all, as if they were one. One that fails stops none of the others.
    """

    flushes: tuple[Batch, ...]


@attrs.frozen
class Copy:
    """A COPY FROM STDIN with blocks of its binary format. Answered with no results."""

    statement: str
    blocks: Iterator[bytes]


@attrs.frozen
class Script:
    """Several statements without parameters, as text. Answered with no results."""

    text: str


Request: TypeAlias = Batch | OnOwnConnection | InSavepoint | InParallel | Copy | Script
Operation: TypeAlias = Generator[Request, Results, T]
