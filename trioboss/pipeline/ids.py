"""Ids for the rows of a load that bring none: UUIDv7, like those of senders."""

import os
import time

import attrs

__all__ = ["Ids"]


@attrs.frozen
class Ids:
    """The ids of one task: the time of the load, the number of the task, a random part, and the position.

    So those of all tasks are in the order of the load, and an index that grows at one end grows fastest.
    """

    _base: int

    @classmethod
    def of_task(cls, began: float, number: int) -> "Ids":
        """For one attempt of a task of a load that began at that time."""
        time = int(began * 1000) & (1 << 48) - 1
        own = int.from_bytes(os.urandom(4), "big") >> 2
        return cls(time << 80 | 0x7 << 76 | (number & 0xFFF) << 64 | 0b10 << 62 | own << 32)

    @classmethod
    def of_now(cls) -> "Ids":
        """For a task that is alone."""
        return cls.of_task(time.time(), 0)

    def make(self, first: int, count: int) -> list[bytes]:
        """The ids of so many positions."""
        return [(self._base + position).to_bytes(16, "big") for position in range(first, first + count)]
