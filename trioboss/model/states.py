"""The states of a job, and the one table that says how a job may move between them.

The order of the states matters: "queued" is everything before ACTIVE, "live" is everything up to ACTIVE.
The database keeps the same order in the type job_state. tests/sql/test_transitions.py tries every verb on
every state against Postgres and checks that it moves exactly as TRANSITIONS says.
"""

import enum
from typing import Final

__all__ = ["TRANSITIONS", "JobState", "Verb"]


class JobState(enum.StrEnum):
    """Where a job is in its life."""

    CREATED = "created"
    RETRY = "retry"
    ACTIVE = "active"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def is_queued(self) -> bool:
        """True while the job waits to be claimed."""
        return self in (JobState.CREATED, JobState.RETRY)

    @property
    def is_ended(self) -> bool:
        """True once nothing will happen to the job by itself any more."""
        return self in (JobState.COMPLETED, JobState.CANCELLED, JobState.FAILED)


class Verb(enum.StrEnum):
    """What can be done to a job."""

    CLAIM = "claim"
    COMPLETE = "complete"
    FAIL = "fail"  # with retries left, else EXHAUST
    EXHAUST = "exhaust"
    RELEASE = "release"
    CANCEL = "cancel"
    RESUME = "resume"
    RETRY = "retry"


# A released job waits as RETRY even if it never failed: its old place as CREATED may have been taken
# meanwhile (policies short and stately count what is created), and RETRY keeps its turn.
TRANSITIONS: Final = {
    JobState.CREATED: {
        Verb.CLAIM: JobState.ACTIVE,
        Verb.CANCEL: JobState.CANCELLED,
    },
    JobState.RETRY: {
        Verb.CLAIM: JobState.ACTIVE,
        Verb.CANCEL: JobState.CANCELLED,
    },
    JobState.ACTIVE: {
        Verb.COMPLETE: JobState.COMPLETED,
        Verb.FAIL: JobState.RETRY,
        Verb.EXHAUST: JobState.FAILED,
        Verb.RELEASE: JobState.RETRY,
        Verb.CANCEL: JobState.CANCELLED,
    },
    JobState.COMPLETED: {},
    JobState.CANCELLED: {
        Verb.RESUME: JobState.CREATED,
    },
    JobState.FAILED: {
        Verb.RETRY: JobState.RETRY,
    },
}
