"""The answers to calls about jobs."""

from typing import Any
from uuid import UUID

import attrs

from trioboss.model.states import JobState

__all__ = ["JobUpdate", "Redriven", "Settled"]


@attrs.frozen
class JobUpdate:
    """A job that is followed, as it is now."""

    id: UUID
    queue: str
    state: JobState
    attempt: int
    progress: Any
    """The value that its handler has last reported with `job.progress`."""
    output: Any
    """Its output if it is completed; the error of its last attempt if that has failed."""


@attrs.frozen
class Redriven:
    """The result of `redrive`; of a dry run what would happen."""

    moved: int
    destinations: dict[str, int]
    """How many of them for each queue."""
    unroutable: int
    """Jobs that stay: their queue is gone, or needs a key that they do not have."""
    refused: int
    """Jobs that stay: a policy refused them. A dry run cannot tell."""
    duplicates: int = 0
    """Jobs that stay: the job of which each is a copy blocks its key, was retried, or has completed since."""


@attrs.frozen
class Settled:
    """The answer to a call: how many jobs it was asked for, how many it changed, and which."""

    requested: int
    affected: int
    ids: tuple[UUID, ...]
