"""Decides how many outcomes of one queue go into one statement, and when those that were postponed are tried again."""

import math
from collections.abc import Sequence

import attrs

__all__ = ["MOST_CHARACTERS", "MOST_ROWS", "SettleMachine"]

# The most that one statement settles: a document of outputs is one parameter, and takes about 50 ms for each megabyte.
MOST_ROWS = 2_000
MOST_CHARACTERS = 4_000_000
_FIRST_DELAY, _LONGEST_DELAY = (
    0.25,
    5.0,
)  # seconds until postponed outcomes are tried again; doubled each time


@attrs.define
class SettleMachine:
    """The sizes and times of the statements that settle. actors/completer.py keeps the outcomes."""

    postponed_until: float = math.inf
    """When to try again those that had to wait for another transaction; infinite if there are none."""
    _delay: float = _FIRST_DELAY
    _most_characters: int = attrs.field(factory=lambda: MOST_CHARACTERS)
    """Of outputs and errors in one statement."""

    def count_fitting(self, sizes: Sequence[int]) -> int:
        """How many of the outcomes that wait fit into one statement, if they have so many characters each. At least
        one; the rest waits for the next statement.
        """
        if sum(sizes) <= self._most_characters:
            return len(sizes)  # nearly always
        total = 0
        for count, size in enumerate(sizes):
            total += size
            if total > self._most_characters and count:
                return count
        return len(sizes)

    def answered(self) -> None:
        """The database has answered a statement: the next one may be as large as any."""
        self._most_characters = MOST_CHARACTERS

    def unanswered(self) -> None:
        """A statement was not answered. It may have been too large for the time it had: the next one is smaller."""
        # By four: a statement that took too long by far must not fail ten times before it is small enough.
        self._most_characters //= 4

    def postpone(self, now: float, *, again: bool) -> None:
        """Some outcomes have to wait for another transaction. ``again``: they were postponed before."""
        self._delay = min(2 * self._delay, _LONGEST_DELAY) if again else _FIRST_DELAY
        # Not later than those that were postponed before: their time does not move.
        self.postponed_until = min(self.postponed_until, now + self._delay)

    def postponed_taken(self) -> None:
        """All that were postponed go into a statement, or wait with the others again."""
        self.postponed_until = math.inf
