"""Checks a history. Each check yields one line for each violation; a history is good if there is none.

lost            an acknowledged job that is missing, has not ended, or failed without a dead letter job
unexpected      a job that was never sent, or a handler call for one
duplicated      a job that ended twice, ran after its completion, or has two dead letter jobs
stale_accepted  the result of an attempt that was over, stored as that of another
altered         a handler that got other data than was sent
disobeyed       a cancelled job that was not, or one that is cancelled although nobody did, or was resumed
out_of_order    jobs that started against the order of their commits, or of their priorities
overlapped      two leases of one key at the same time, where the policy allows one
over_limit      two jobs where a policy, send_once, send_singleton or a throttle allows one
refused         a send that got no job, although no other job was in its way
early           a deferred job, or one of a schedule, that started before its time
late            a job that started too late, or a worker that stopped too late, and no other fault is the reason
gave_up         a worker process that ended by itself
leaked          a worker process whose memory grew
unexplained     an attempt that ended, or a job that ran again, without a fault that explains it
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from statistics import median
from uuid import UUID

import attrs

from tests.chaos.harness.explaining import TICK, find_gave_up, find_unexplained
from tests.chaos.harness.history import Change, EndedAttempt, History, JobRow, Start
from tests.chaos.harness.lateness import find_early, find_late
from tests.chaos.harness.limits import find_over_limit
from tests.chaos.harness.ordering import find_out_of_order, find_overlapped
from tests.chaos.harness.refusals import find_refused

__all__ = ["CHECKS", "CheckResult", "check"]

TERMINAL = ("completed", "failed", "cancelled")

Find = Callable[[History], Iterable[str]]


@attrs.frozen
class CheckResult:
    """The violations, by the name of the check."""

    found: dict[str, list[str]]

    @property
    def is_good(self) -> bool:
        """Whether every promise held."""
        return not any(self.found.values())

    def __str__(self) -> str:
        lines = [f"{name}: {line}" for name, lines in self.found.items() for line in lines[:10]]
        counts = ", ".join(f"{name} {len(lines)}" for name, lines in self.found.items())
        return "\n".join([counts, *lines])


def check(history: History) -> CheckResult:
    """Make every check."""
    return CheckResult({name: list(find(history)) for name, find in CHECKS.items()})


def find_lost(history: History) -> Iterator[str]:
    rows = {row.id: row for row in history.rows}
    for send in history.sends:
        if send.answer == "ok" and send.id not in rows:
            yield f"{send.id} was acknowledged in {send.queue} and is missing"
    acknowledged = {send.id for send in history.sends if send.answer in ("ok", "unknown")}
    for id in history.ledger:
        if id in acknowledged and id not in rows:
            yield f"{id} is missing, and the transaction it was sent in was committed"
    copies = Counter(row.source_id for row in history.rows if row.source_id)
    for row in history.rows:
        if row.state not in TERMINAL:
            yield f"{row.id} in {row.queue} is still {row.state}"
        elif row.state == "failed" and history.rules(row.queue).dead_letter and not copies[row.id]:
            yield f"{row.id} in {row.queue} failed without a dead letter job"
    for tick in history.ticks:
        if tick.id not in rows:
            yield f"{tick.id} is missing, the job of the tick at {tick.due:.0f}"
    for before, after in pairwise(history.ticks):
        if after.due - before.due > 1.5:
            yield f"no tick of the schedule between {before.due:.0f} and {after.due:.0f}"


def find_unexpected(history: History) -> Iterator[str]:
    sends = {send.id: send for send in history.sends}
    rows = {row.id: row for row in history.rows}
    committed = set(history.ledger)
    ticks = {tick.id for tick in history.ticks}
    for row in history.rows:
        if row.id in ticks:
            continue
        if row.source_id is not None:
            yield from _misplaced_dead_letter(row, rows.get(row.source_id), history)
            continue
        send = sends.get(row.id)
        if send is None or send.answer in ("refused", "rolled_back"):
            yield f"{row.id} in {row.queue} exists, and was {send.answer if send else 'never sent'}"
        elif send.in_ledger and row.id not in committed:
            yield f"{row.id} exists, and the transaction it was sent in was not committed"
    for start in history.starts:
        if start.id not in rows:
            yield f"{start.token} ran {start.id}, which does not exist"


def _misplaced_dead_letter(copy: JobRow, source: JobRow | None, history: History) -> Iterator[str]:
    if source is None or source.state != "failed":
        yield f"{copy.id} is the dead letter job of {copy.source_id}, which has not failed"
    elif history.rules(source.queue).dead_letter != copy.queue:
        yield f"{copy.id} is a dead letter job in {copy.queue}, which is not the dead letter queue of {source.queue}"


def find_duplicated(history: History) -> Iterator[str]:
    for id, count in Counter(row.id for row in history.rows).items():
        if count > 1:
            yield f"{id} exists {count} times"
    for id, count in Counter(row.source_id for row in history.rows if row.source_id).items():
        if count > 1:
            yield f"{id} has {count} dead letter jobs"
    accepted = {(each.id, each.attempt) for each in history.settled if each.accepted}
    for id, count in Counter(id for id, _ in accepted).items():
        if count > 1:
            yield f"{id}: the results of {count} attempts were accepted"
    for lease, count in Counter((start.id, start.leased_on) for start in history.starts).items():
        if count > 1:
            yield f"{lease[0]}: one lease was run {count} times"
    completed = {row.id: row.ended_on for row in history.rows if row.state == "completed"}
    for start in history.starts:
        ended_on = completed.get(start.id)
        if ended_on is not None and start.leased_on > ended_on:
            yield f"{start.id} was leased again by {start.token} after it was completed"


def find_stale_accepted(history: History) -> Iterator[str]:
    owners = {start.token: start for start in history.starts}
    rows = {row.id: row for row in history.rows}
    for row in history.rows:
        if row.state == "completed" and not _is_own(row, owners.get(row.token or "")):
            yield f"{row.id}: attempt {row.attempt} has the result of {owners.get(row.token or '')}"
    for end in history.ended:
        if end.outcome == "failed" and not _is_own(end, owners.get(end.token or "")):
            yield f"{end.id}: attempt {end.attempt} has the error of {owners.get(end.token or '')}"
    for each in history.settled:
        kept = rows.get(each.id)
        if each.accepted and kept is not None and (kept.state, kept.attempt) != ("completed", each.attempt):
            yield f"{each.id}: attempt {each.attempt} was accepted, the job is {kept.state} by {kept.attempt}"


def _is_own(kept: JobRow | EndedAttempt, owner: Start | None) -> bool:
    """Whether a result belongs to the lease it was kept for."""
    return (
        owner is not None
        and (owner.id, owner.attempt) == (kept.id, kept.attempt)
        and kept.leased_on is not None
        and abs(owner.leased_on - kept.leased_on) < TICK
    )


def find_altered(history: History) -> Iterator[str]:
    sums = {send.id: send.checksum for send in history.sends}
    sums |= {row.id: sums[row.source_id] for row in history.rows if row.source_id in sums}
    for start in history.starts:
        if sums.get(start.id, start.checksum) != start.checksum:
            yield f"{start.token} got other data for {start.id} than was sent"


def find_disobeyed(history: History) -> Iterator[str]:
    rows = {row.id: row for row in history.rows}
    cancels = {each.id: each for each in history.changes if each.kind == "cancel"}
    resumes = {each.id: each for each in history.changes if each.kind == "resume"}
    for row in history.rows:
        if row.state == "cancelled" and cancels.get(row.id, _NEVER).answer == "refused":
            yield f"{row.id} is cancelled, and no call did that"
        if row.state == "cancelled" and resumes.get(row.id, _NEVER).answer == "ok":
            yield f"{row.id} is cancelled, and was resumed"
    for id, cancel in cancels.items():
        if cancel.answer != "ok" or resumes.get(id, _NEVER).answer != "refused":
            continue
        if id in rows and rows[id].state != "cancelled":
            yield f"{id} was cancelled, and is {rows[id].state}"
    for start in history.starts:
        stopped = cancels.get(start.id, _NEVER)
        resumed = resumes.get(start.id, _NEVER)
        if stopped.answer == "ok" and stopped.answered < start.leased_on < resumed.invoked:
            yield f"{start.id} was leased by {start.token} after it was cancelled"


def find_leaked(history: History) -> Iterator[str]:
    """Compare the second quarter of the run with the last one: pools and caches are filled by then. The least of the
    last counts: what is leaked stays, and what jobs of several megabytes leave unused is given back.
    """
    for process in dict.fromkeys(each.process for each in history.memory):
        sizes = [each.megabytes for each in history.memory if each.process == process]
        quarter = len(sizes) // 4
        if quarter < _FEWEST_SIZES:
            continue
        before, after = median(sizes[quarter : 2 * quarter]), min(sizes[-quarter:])
        if after > before * _GROWTH + _FLUCTUATION:
            yield f"the memory of {process} grew from {before:.0f} MB to {after:.0f} MB"


_FEWEST_SIZES = 10  # of a quarter
_GROWTH, _FLUCTUATION = 1.1, 5.0  # megabytes
_NEVER = Change(UUID(int=0), "never", math.inf, math.inf, "refused")

CHECKS: dict[str, Find] = {
    "lost": find_lost,
    "unexpected": find_unexpected,
    "duplicated": find_duplicated,
    "stale_accepted": find_stale_accepted,
    "altered": find_altered,
    "disobeyed": find_disobeyed,
    "out_of_order": find_out_of_order,
    "overlapped": find_overlapped,
    "over_limit": find_over_limit,
    "refused": find_refused,
    "early": find_early,
    "late": find_late,
    "gave_up": find_gave_up,
    "leaked": find_leaked,
    "unexplained": find_unexplained,
}
