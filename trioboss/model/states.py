"""The states of a job, and the tables of its transitions.

Users see the `JobState`. The database stores the `Readiness` of a live job: the thing that it waits for, one at a time.
`TRANSITIONS` and `READINESS` are the only descriptions of a job's life; tests/sql/test_transitions.py tries every
action on every state and every event on every readiness against Postgres, and compares. `STATEMENTS` names the files in
sql/statements that carry out each event.
"""

import enum
from typing import Final

__all__ = [
    "READINESS",
    "STATEMENTS",
    "TRANSITIONS",
    "Action",
    "JobState",
    "Readiness",
    "ReadinessEvent",
    "state_of",
]


class JobState(enum.StrEnum):
    """Where a job is in its life. The order matters: "queued" is everything before ACTIVE."""

    CREATED = "created"
    """It waits, and was never attempted."""
    RETRY = "retry"
    """It waits for another attempt."""
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


class Action(enum.StrEnum):
    """An action on a job."""

    CLAIM = "claim"
    COMPLETE = "complete"
    COMPLETE_QUEUED = "complete_queued"  # complete(include_queued=True): nobody has to run the job any more
    FAIL = "fail"  # with retries left, else EXHAUST
    EXHAUST = "exhaust"
    RELEASE = "release"
    QUARANTINE = "quarantine"  # a value of the job is rejected by the database
    CANCEL = "cancel"
    RESUME = "resume"
    RETRY = "retry"


# A job that was attempted waits as RETRY, even if it was only released: another CREATED job may have its policy slot by
# then (the policies short and stately count created jobs). An action with two next states takes a job back from its
# end: it is RETRY if it was attempted, and CREATED if it was cancelled or quarantined before its first attempt.
TRANSITIONS: Final[dict[JobState, dict[Action, tuple[JobState, ...]]]] = {
    JobState.CREATED: {
        Action.CLAIM: (JobState.ACTIVE,),
        Action.COMPLETE_QUEUED: (JobState.COMPLETED,),
        Action.QUARANTINE: (JobState.FAILED,),
        Action.CANCEL: (JobState.CANCELLED,),
    },
    JobState.RETRY: {
        Action.CLAIM: (JobState.ACTIVE,),
        Action.COMPLETE_QUEUED: (JobState.COMPLETED,),
        Action.QUARANTINE: (JobState.FAILED,),
        Action.CANCEL: (JobState.CANCELLED,),
    },
    JobState.ACTIVE: {
        Action.COMPLETE: (JobState.COMPLETED,),
        Action.FAIL: (JobState.RETRY,),
        Action.EXHAUST: (JobState.FAILED,),
        Action.RELEASE: (JobState.RETRY,),
        Action.QUARANTINE: (JobState.FAILED,),
        Action.CANCEL: (JobState.CANCELLED,),
    },
    JobState.COMPLETED: {},
    JobState.CANCELLED: {
        Action.RESUME: (JobState.CREATED, JobState.RETRY),
    },
    JobState.FAILED: {
        Action.RETRY: (JobState.CREATED, JobState.RETRY),
    },
}


class Readiness(enum.StrEnum):
    """The thing that a live job waits for. The database has the same order in its type readiness."""

    DEFERRED = "deferred"
    """A time: start_after."""
    BLOCKED = "blocked"
    """Other jobs, or a signal. (Reserved: no statement blocks a job yet.)"""
    WAITING = "waiting"
    """In its backlog, for a claim that admits it: one owner a key. (Reserved: a limit that is used up.)"""
    READY = "ready"
    """Nothing: the next claim may take it."""
    ACTIVE = "active"
    """Nothing: a worker has leased it."""
    ENDED = "ended"
    """A person: it failed, and blocks its key until it is retried or deleted."""


class ReadinessEvent(enum.StrEnum):
    """An event that changes the readiness of a live job, named after the first of its `STATEMENTS`. (UNBLOCK and the
    readiness BLOCKED are reserved for flows.)
    """

    PROMOTE_DUE = "promote_due"  # its time has come
    UNBLOCK = "unblock"  # the jobs or the signal that it waited for are there
    ADMIT = "admit"  # it is the first of a backlog without an owner; a claim may admit and take it at once
    CLAIM = "claim"
    CLAIM_EARLY = "claim_early"  # a fetch that ignores start_after takes it before its time
    RETRY_FAILED = "retry_failed"  # its attempt failed, and it has retries left
    FAIL = "fail"  # its attempt failed, and it has none
    QUARANTINE = "quarantine"  # the database rejects a value of it
    RELEASE = "release"
    RETRY = "retry"
    COMPLETE = "complete"
    COMPLETE_QUEUED = "complete_queued"
    RESCHEDULE = "reschedule"  # an operator lets it run now
    UPDATE_JOBS = "update_jobs"  # somebody gives it another time
    CANCEL = "cancel"
    DELETE = "delete_job"


_GONE = None
"""The job leaves the live table."""

_OUT: Final = {
    ReadinessEvent.QUARANTINE: (_GONE,),
    ReadinessEvent.CANCEL: (_GONE,),
    ReadinessEvent.DELETE: (_GONE,),
}
_BLOCKS: Final = {ReadinessEvent.QUARANTINE: (Readiness.ENDED, _GONE)}
"""For jobs that can own their key."""
_QUEUED: Final = {ReadinessEvent.COMPLETE_QUEUED: (_GONE,), **_OUT}

# Where there are several next states:
#   WAITING, READY   A job of a keyed queue waits in its backlog where one of another queue is ready. A job that owns
#                    its key, as one of key_strict_fifo that was attempted, is ready at once.
#   DEFERRED, …      RETRY_FAILED defers a job if its retry has a delay.
#   ENDED, gone      A job of key_strict_fifo that owns its key stays when it fails, and blocks the key.
# UPDATE_JOBS is listed with a time on the other side of now; a deferred job that gets another future time stays
# deferred, and a job that is due stays as it is. Events that are not listed leave the job alone.
READINESS: Final[dict[Readiness, dict[ReadinessEvent, tuple[Readiness | None, ...]]]] = {
    Readiness.DEFERRED: {
        ReadinessEvent.PROMOTE_DUE: (Readiness.WAITING, Readiness.READY),
        ReadinessEvent.CLAIM_EARLY: (Readiness.ACTIVE,),
        ReadinessEvent.RESCHEDULE: (Readiness.WAITING, Readiness.READY),
        ReadinessEvent.UPDATE_JOBS: (Readiness.WAITING, Readiness.READY),
        **_QUEUED,
        **_BLOCKS,
    },
    Readiness.BLOCKED: {
        ReadinessEvent.UNBLOCK: (Readiness.DEFERRED, Readiness.WAITING, Readiness.READY),
        **_QUEUED,
    },
    Readiness.WAITING: {
        ReadinessEvent.ADMIT: (Readiness.READY,),
        ReadinessEvent.CLAIM: (Readiness.ACTIVE,),
        ReadinessEvent.UPDATE_JOBS: (Readiness.DEFERRED,),
        **_QUEUED,
    },
    Readiness.READY: {
        ReadinessEvent.CLAIM: (Readiness.ACTIVE,),
        ReadinessEvent.UPDATE_JOBS: (Readiness.DEFERRED,),
        **_QUEUED,
        **_BLOCKS,
    },
    Readiness.ACTIVE: {
        ReadinessEvent.RETRY_FAILED: (Readiness.DEFERRED, Readiness.WAITING, Readiness.READY),
        ReadinessEvent.FAIL: (Readiness.ENDED, _GONE),
        ReadinessEvent.RELEASE: (Readiness.WAITING, Readiness.READY),
        ReadinessEvent.COMPLETE: (_GONE,),
        **_OUT,
        **_BLOCKS,
    },
    Readiness.ENDED: {
        ReadinessEvent.RETRY: (Readiness.READY,),
        ReadinessEvent.DELETE: (_GONE,),
    },
}


# The statements that carry out each event. The job of a keyed queue becomes ready in two ways. A waiting job gets its
# key and becomes ready by ADMIT. (A CLAIM by admit_and_claim gives it the key, too, and makes it active at once.) Both
# happen only under the admission lock (lock_admission.sql). A job that owns its key already, as one of key_strict_fifo
# that was attempted, becomes ready by PROMOTE_DUE, RESCHEDULE, UPDATE_JOBS, RETRY_FAILED, RELEASE or RETRY. No other
# statement does it, and triggers make plain SQL keep to that (0002_jobs.sql): fill_in_job where it inserts through the
# view `job`, follow_readiness and follow_key where it changes the readiness, the key or the queue of a job.
# The exception is a role that may update the table live_job itself, as the owner and a worker may. It is trusted with
# the columns that our statements write (P5): a row that it inserts there with a readiness, or an owner that it sets
# along with the readiness, stays as it is. To check such a row, a trigger would have to read the queue at every send.
STATEMENTS: Final[dict[ReadinessEvent, tuple[str, ...]]] = {
    ReadinessEvent.PROMOTE_DUE: ("promote_due",),
    ReadinessEvent.UNBLOCK: (),
    ReadinessEvent.ADMIT: ("admit",),
    ReadinessEvent.CLAIM: ("claim", "claim_onward", "claim_in_order", "admit_and_claim"),
    ReadinessEvent.CLAIM_EARLY: ("claim_early",),
    ReadinessEvent.RETRY_FAILED: ("retry_failed",),
    ReadinessEvent.FAIL: ("fail",),
    ReadinessEvent.QUARANTINE: ("quarantine", "quarantine_unsound"),
    ReadinessEvent.RELEASE: ("release",),
    ReadinessEvent.RETRY: ("retry",),
    ReadinessEvent.COMPLETE: ("complete", "complete_unkept", "complete_with_copy"),
    ReadinessEvent.COMPLETE_QUEUED: ("complete_queued",),
    ReadinessEvent.RESCHEDULE: ("reschedule",),
    ReadinessEvent.UPDATE_JOBS: ("update_jobs",),
    ReadinessEvent.CANCEL: ("cancel",),
    ReadinessEvent.DELETE: (
        *("delete_job", "delete_queued_jobs", "delete_active_jobs", "delete_stored_jobs"),
        *("delete_queue", "clear_storage", "erase_jobs"),
        *("purge_queued", "purge_orphans"),  # retention
        "redrive",  # a new job in another queue replaces it
        *(
            "drop_sent",
            "drop_if_ended",
            "drop_ended_of_stage",
        ),  # a job that was just sent, and is not to be there
    ),
}


def state_of(readiness: Readiness, attempt: int) -> JobState:
    """The state that users see of a live job."""
    # As the view all_jobs derives it. The difference between created and retry is not stored.
    if readiness is Readiness.ACTIVE:
        return JobState.ACTIVE
    if readiness is Readiness.ENDED:
        return JobState.FAILED
    return JobState.RETRY if attempt > 0 else JobState.CREATED
