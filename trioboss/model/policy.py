"""The policies: which jobs of a queue may exist at the same time."""

import enum
from typing import Literal, TypeAlias

from trioboss.errors import UsageError
from trioboss.model.check import shown

__all__ = ["KEYED", "Policy", "PolicyName"]


PolicyName: TypeAlias = Literal[
    "standard",
    "short",
    "singleton",
    "stately",
    "exclusive",
    "key_strict_fifo",
    "debounced",
    "singleton_strict_fifo",
]
"""A policy by its name. ``debounced`` is the older name of short, ``singleton_strict_fifo`` that of key_strict_fifo."""


class Policy(enum.StrEnum):
    """How many jobs of each state a queue allows: in all, or, with ``singleton_key``, for each key."""

    STANDARD = "standard"
    """No limit."""

    SHORT = "short"
    """One created; any number active."""

    SINGLETON = "singleton"
    """One active; any number queued."""

    STATELY = "stately"
    """One in each state: created, retry, active."""

    EXCLUSIVE = "exclusive"
    """One in all: created, retry or active."""

    KEY_STRICT_FIFO = "key_strict_fifo"
    """One at a time for each key, in the order of commit; a failed job blocks its key."""

    @classmethod
    def parse(cls, value: object) -> "Policy":
        """Return the policy of that name; the older names of two policies are understood."""
        older = {"debounced": cls.SHORT, "singleton_strict_fifo": cls.KEY_STRICT_FIFO}
        known = {**older, **{policy.value: policy for policy in cls}}
        if isinstance(value, str) and value in known:
            return known[value]
        raise UsageError(f"policy: {shown(value)} is not a policy: use one of {', '.join(known)}")

    @property
    def is_keyed(self) -> bool:
        """True if jobs of one key run one at a time: each waits in the backlog of its key until it is admitted."""
        return self in KEYED


# As the generated column `keyed` of the table queue.
KEYED = frozenset({Policy.SINGLETON, Policy.STATELY, Policy.KEY_STRICT_FIFO})
"""The policies, also by their names, under which jobs of one key run one at a time."""
