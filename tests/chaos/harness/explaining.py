"""Checks of reasons: every attempt that ended without a result, and every process that ended, has one."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from uuid import UUID

import attrs

from tests.chaos.harness.history import EndedAttempt, Exit, Fault, History, JobRow, Start

__all__ = [
    "CLOCKS",
    "CRASHES",
    "REASONS",
    "TICK",
    "UNAVAILABLE",
    "explains",
    "find_gave_up",
    "find_unexplained",
]

CRASHES = ("restart", "failover")
"""Faults that may undo what was committed asynchronously."""
TICK = 1e-3  # seconds by which two records of one instant may differ
CLOCKS = 0.02  # seconds by which the wall clock, of the database, and the monotonic one, of the journals, may diverge
_SPENT = ("failed", "lost", "expired")  # outcomes that use up a retry

# The faults that can take a lease from a worker, and the seconds after the end of each in which a new lease can still
# suffer from it. A silent connection stays silent until the worker finds out. Others are reconnects and restarts.
_TAKES_LEASES = {
    **dict.fromkeys(("kill", "poison", "stop", "delay", "lock", "disk_full", "overload"), 5.0),
    **dict.fromkeys(("restart", "failover", "backends", "listener", "cut_reply"), 10.0),
    **dict.fromkeys(("silence", "half_close"), 20.0),
}
# A worker that loses its connection, or resumes, gives up leases that others may have taken, and those of claims whose
# reply it did not get. They are released.
_GIVES_BACK = {
    "term": 0.0,
    **{kind: s for kind, s in _TAKES_LEASES.items() if kind not in ("kill", "poison")},
}
REASONS = {"lost": _TAKES_LEASES, "expired": _TAKES_LEASES, "released": _GIVES_BACK}

_KILLED, _POISONED, _STOPPED = -9, 137, 0  # exit codes
UNAVAILABLE = 75
"""The exit code of a worker that could not start, because the database was not available."""
_EXITS = {
    _KILLED: {"kill": 5.0},
    _POISONED: {"poison": 30.0},
    _STOPPED: {"term": 5.0},
    UNAVAILABLE: dict.fromkeys(_TAKES_LEASES, 30.0),
}


def find_gave_up(history: History) -> Iterator[str]:
    for exit in history.exits:
        if not _was_ended(exit, history.faults):
            yield f"{exit.process} ended with the code {exit.code}, and no fault ended it"


def _was_ended(exit: Exit, faults: list[Fault]) -> bool:
    reasons = _EXITS.get(exit.code, {})
    return any(
        fault.kind in reasons
        and fault.target in (exit.process, None)
        and fault.at <= exit.at <= fault.until + reasons[fault.kind]
        for fault in faults
    )


def find_unexplained(history: History) -> Iterator[str]:
    yield from _unexplained_runs(history)
    yield from _unexplained_ends(history)
    yield from _unexplained_failures(history)


def _unexplained_runs(history: History) -> Iterator[str]:
    """Find handler calls without a reason: neither did the attempt before end, nor did a crash lose its lease.

    Claims are committed asynchronously, so a crash of the server may undo one whose handler has begun.
    """
    ends = {(end.id, end.attempt): end.leased_on for end in history.ended}
    crashes = [fault for fault in history.faults if fault.kind in CRASHES]
    runs: defaultdict[UUID, list[Start]] = defaultdict(list)
    for start in sorted(history.starts, key=lambda start: start.leased_on):
        runs[start.id].append(start)
    for calls in runs.values():
        for before, after in pairwise(calls):
            leased_on = ends.get((before.id, before.attempt))
            if leased_on is not None and abs(leased_on - before.leased_on) < TICK:
                continue
            if not any(before.leased_on <= crash.until and crash.at <= after.at for crash in crashes):
                yield f"{after.id} was run by {after.token}, and {before.token} had not ended"


def _unexplained_ends(history: History) -> Iterator[str]:
    """Find leases that ended early without a fault.

    A worker counts the expiry from when it sent the claim, which may take long, so half of the time is tolerated.
    """
    expiries = {row.id: row.expire_in for row in history.rows}
    for end in history.ended:
        lasted = end.ended_on - end.leased_on
        in_time = end.outcome == "expired" and lasted >= expiries.get(end.id, 0) / 2
        if end.outcome in REASONS and not in_time and not _has_fault(end, history):
            found = f"{end.outcome} after {lasted:.2f} s without a fault"
            yield f"{end.id}: attempt {end.attempt} of {end.worker} was {found}"


def _has_fault(end: EndedAttempt, history: History) -> bool:
    """Whether a fault of a kind that explains the end hit the worker while it had the lease.

    The worker of a lease is unknown if its process was killed, or the reply to its claim lost, before it wrote its
    journal: then the fault may be that of any worker.
    """
    return any(explains(fault, end) for fault in history.faults)


def explains(fault: Fault, end: EndedAttempt) -> bool:
    """Whether a fault can be the reason why an attempt ended without a result."""
    reasons = REASONS.get(end.outcome, {})
    return (
        fault.kind in reasons
        and (fault.target in (None, end.worker) or end.worker is None)
        and fault.at <= end.ended_on
        and end.leased_on <= fault.until + reasons[fault.kind]
    )


# -- jobs that fail


def _unexplained_failures(history: History) -> Iterator[str]:
    spent = Counter(end.id for end in history.ended if end.outcome in _SPENT)
    slots: _Slots | None = None
    for row in history.rows:
        if spent[row.id] > row.retry_limit + 1:
            yield f"{row.id} used {spent[row.id]} attempts, and its retry_limit is {row.retry_limit}"
        if row.state != "failed" or spent[row.id] > row.retry_limit:
            continue
        slots = slots or _Slots.of(history)
        if not slots.were_taken(row):
            yield f"{row.id} failed after {spent[row.id]} attempts, and its retry_limit is {row.retry_limit}"


@attrs.frozen
class _Slots:
    """Which jobs were queued when. A retry is refused where stately or send_singleton has no policy slot for it."""

    history: History
    rows: dict[tuple[str, str | None], list[JobRow]]
    ends: dict[UUID, list[EndedAttempt]]
    singletons: dict[UUID, float]
    """When each job was sent that send_singleton has sent."""

    @classmethod
    def of(cls, history: History) -> "_Slots":
        rows: defaultdict[tuple[str, str | None], list[JobRow]] = defaultdict(list)
        for row in history.rows:
            rows[row.queue, row.key].append(row)
        ends: defaultdict[UUID, list[EndedAttempt]] = defaultdict(list)
        for end in sorted(history.ended, key=lambda end: end.ended_on):
            ends[end.id].append(end)
        sends = {send.id: send.invoked for send in history.sends if send.method == "send_singleton"}
        return cls(history, rows, ends, sends)

    def were_taken(self, row: JobRow) -> bool:
        """Whether the policy slot of a retry was taken when the last attempt of a job failed. `lost` is no failure."""
        last = self.ends[row.id][-1] if row.id in self.ends else None
        if last is None or last.outcome not in ("failed", "expired"):
            return False
        others = [other for other in self.rows[row.queue, row.key] if other.id != row.id]
        if self.history.rules(row.queue).one_retry and any(
            self._was_retry(other, last.ended_on) for other in others
        ):
            return True
        return row.id in self.singletons and any(
            other.id in self.singletons and self._was_queued(other, last.ended_on) for other in others
        )

    def _was_retry(self, other: JobRow, at: float) -> bool:
        """Whether an attempt of the other job was over then, and the next one had not begun."""
        before = [end for end in self.ends.get(other.id, []) if end.ended_on <= at + TICK]
        if not before or self._had_ended(other, at):
            return False
        return not any(before[-1].ended_on < lease < at - TICK for lease in self._leases(other))

    def _was_queued(self, other: JobRow, at: float) -> bool:
        is_new = self.singletons[other.id] <= at and not any(
            lease < at - TICK for lease in self._leases(other)
        )
        return (is_new and not self._had_ended(other, at)) or self._was_retry(other, at)

    def _leases(self, job: JobRow) -> list[float]:
        leases = [end.leased_on for end in self.ends.get(job.id, [])]
        return leases if job.leased_on is None else [*leases, job.leased_on]

    @staticmethod
    def _had_ended(job: JobRow, at: float) -> bool:
        return job.ended_on is not None and job.ended_on < at - TICK
