"""How an operation of the store asks for the database without waiting for it.

An operation is a generator: it yields a request, is sent the results, and returns its value. The function that executes
it (see `executor.py`) brings the connection and does the waiting, so each operation is written once, for trio and for
blocking code.
"""

from collections.abc import Generator, Iterator
from typing import TypeAlias, TypeVar

import attrs

from trioboss.postgres.wire import BoundStatement, Results, Transactions

__all__ = [
    "Batch",
    "Copy",
    "InParallel",
    "InSavepoint",
    "OnOwnConnection",
    "Operation",
    "Request",
    "Script",
    "all_transactions",
]

T = TypeVar("T")


@attrs.frozen(init=False)
class Batch:
    """Transactions to run in one round trip. In a caller's transaction they all become part of it.

    The ``follow_up`` is one more transaction, sent along with the others. On our own connections the operation does not
    wait for it: its results are not returned, and its failure is only logged. A batch of nothing but a follow-up
    follows up on the batch before it, whose results the operation already has.
    """

    transactions: tuple[tuple[BoundStatement, ...], ...]
    follow_up: tuple[BoundStatement, ...]
    await_follow_up: bool
    """Wait until the follow-up has ended, too: for an operation without another statement to send. The next user of the
    connection then need not read the follow-up's result first."""

    def __init__(
        self,
        *transactions: tuple[BoundStatement, ...],
        follow_up: tuple[BoundStatement, ...] = (),
        await_follow_up: bool = False,
    ) -> None:
        # Without empty transactions, so that operations can leave out a part: Batch(marker if idle else (), claim).
        self.__attrs_init__(tuple(filter(None, transactions)), follow_up, await_follow_up)

    @property
    def all_transactions(self) -> tuple[tuple[BoundStatement, ...], ...]:
        """The transactions and the follow-up."""
        return (*self.transactions, self.follow_up) if self.follow_up else self.transactions


@attrs.frozen
class OnOwnConnection:
    """A batch for one of our own connections, even if the operation runs in a caller's transaction."""

    batch: Batch


@attrs.frozen
class InSavepoint:
    """A batch that may fail and be repeated: in a caller's transaction its failure rolls back nothing else."""

    batch: Batch


@attrs.frozen
class InParallel:
    """Batches that do not depend on each other: in parallel on our own connections, one after the other on a caller's.

    The results are those of all batches, as if they were one. A batch that fails stops none of the others.
    """

    batches: tuple[Batch, ...]


@attrs.frozen
class Copy:
    """A COPY FROM STDIN with blocks of its binary format. There are no results."""

    statement: str
    blocks: Iterator[bytes]


@attrs.frozen
class Script:
    """Several statements without parameters, as text. There are no results."""

    text: str


Request: TypeAlias = Batch | OnOwnConnection | InSavepoint | InParallel | Copy | Script
Operation: TypeAlias = Generator[Request, Results, T]


def all_transactions(request: Batch | InParallel) -> Transactions:
    """The transactions of all batches of a request, in order."""
    batches = request.batches if isinstance(request, InParallel) else (request,)
    return [transaction for batch in batches for transaction in batch.all_transactions]
