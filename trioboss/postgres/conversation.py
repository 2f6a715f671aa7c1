"""How a verb talks to the database without waiting for it.

A verb is a generator: it yields what to run, is sent the results, and returns its answer. Whoever drives it
brings the connection and decides how to wait, so each verb is written once, for trio and for blocking code.
"""

from collections.abc import Generator, Iterator
from typing import TypeAlias, TypeVar

import attrs

from trioboss.postgres.flush import Results, Step

__all__ = ["Aside", "Attempt", "Conversation", "Copy", "Flush", "Request", "Script", "Together"]

T = TypeVar("T")


@attrs.frozen(init=False)
class Flush:
    """Transactions to run, in one round trip. In the caller's transaction they all become part of it.

    The ``sequel`` is one more, for which our own connections do not wait: nothing is known of how it ended. Alone, it
    follows the flush before it, which is over and done.
    """

    transactions: tuple[tuple[Step, ...], ...]
    sequel: tuple[Step, ...]
    patient: bool
    """Wait for the end of the sequel all the same: there is time, and the connection is then at rest."""

    def __init__(
        self, *transactions: tuple[Step, ...], sequel: tuple[Step, ...] = (), patient: bool = False
    ) -> None:
        self.__attrs_init__(tuple(filter(None, transactions)), sequel, patient)

    @property
    def all(self) -> tuple[tuple[Step, ...], ...]:
        """The transactions and the sequel."""
        return (*self.transactions, self.sequel) if self.sequel else self.transactions


@attrs.frozen
class Aside:
    """A flush for one of our own connections, even if the verb runs in the caller's transaction."""

    flush: Flush


@attrs.frozen
class Attempt:
    """A flush that may fail and be repeated: in the caller's transaction its failure undoes nothing else."""

    flush: Flush


@attrs.frozen
class Together:
    """Flushes that do not depend on each other: at the same time on connections of our own, in turn on a caller's.

    Answered with the results of all, as if they were one. One that fails stops none of the others.
    """

    flushes: tuple[Flush, ...]


@attrs.frozen
class Copy:
    """A COPY FROM STDIN with blocks of its binary format. Answered with no results."""

    statement: str
    blocks: Iterator[bytes]


@attrs.frozen
class Script:
    """Several statements without parameters, as text. Answered with no results."""

    text: str


Request: TypeAlias = Flush | Aside | Attempt | Together | Copy | Script
Conversation: TypeAlias = Generator[Request, Results, T]
