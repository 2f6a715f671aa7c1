"""The commands of the dispatch machine to its dispatcher, and the facts that it gets from the completer."""

import math
from typing import TypeAlias

import attrs

from trioboss.model.settle_and_claim import ClaimRequest

__all__ = ["Command", "DatabaseCommand", "Pending", "Recover", "Settle", "Stop", "Wait"]


@attrs.frozen
class Settle:
    """Settle the outcomes that wait."""

    postponed: bool = False
    """Settle those that were postponed instead."""


@attrs.frozen
class Recover:
    """Release the jobs that the database has leased to this worker, and of which the worker has no record."""


@attrs.frozen
class Wait:
    """Do nothing until this time, or until the doorbell rings."""

    until: float
    for_room: bool = False
    """There may be jobs to claim, but there is no room for them."""
    to_settle: bool = False
    """Then an outcome has waited long enough."""


@attrs.frozen
class Stop:
    """Nothing is left to do, and nothing will come."""


Command: TypeAlias = ClaimRequest | Settle | Recover | Wait | Stop
DatabaseCommand: TypeAlias = ClaimRequest | Settle | Recover
"""The commands that ask the database for something. A claim settles the outcomes that wait, too, in one round trip."""


# Made for every iteration of a dispatcher, and not frozen: that would cost 0.6 µs more.
@attrs.define
class Pending:
    """The outcomes that the completer holds."""

    since: float | None = None
    """When the first of the outcomes that wait became known; None if none waits."""
    frees_jobs: bool = False
    """Settling them may make a job ready: a failed or released one is queued again."""
    leases_to_recover: int = 0
    """How many leases this process has ended, so far, that may still be in the database, and have to be recovered."""
    unfinished: bool = False
    """Whether further outcomes may come. Only a dispatcher that stops needs to know."""
    postponed_until: float = math.inf
    """When to try those outcomes again that had to wait for another transaction; infinite if there are none."""
