"""Checks a history. Each check yields one line for each violation; a history is good if there is none.

lost            an acknowledged job that is missing, has not ended, or failed without a dead letter job
unexpected      a job that was never sent, or a handler call for one
duplicated      a job that ended twice, ran after its completion, or has two dead letter jobs
stale_accepted  the result of an attempt that was over, stored as that of another
out_of_order    jobs of one key that started against the order of their commits
overlapped      two leases of one key at the same time, where the policy allows one
unexplained     an attempt that ended, or a job that ran again, without a fault that explains it
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from uuid import UUID

import attrs

from tests.chaos.harness.history import EndedAttempt, History, JobRow, Start

__all__ = ["CHECKS", "Verdict", "check"]

TERMINAL = ("completed", "failed", "cancelled")
_SPENT = ("failed", "lost", "expired")  # outcomes that use up a retry
_AFTERMATH = 20.0  # seconds after the end of a fault in which it still explains a lost lease
_TICK = 1e-3  # seconds by which the times of the journals and of the database may differ

Find = Callable[[History], Iterable[str]]


@attrs.frozen
class Verdict:
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


def check(history: History) -> Verdict:
    """Make every check."""
    return Verdict({name: list(find(history)) for name, find in CHECKS.items()})


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


def find_unexpected(history: History) -> Iterator[str]:
    sends = {send.id: send for send in history.sends}
    rows = {row.id: row for row in history.rows}
    committed = set(history.ledger)
    for row in history.rows:
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
        and abs(owner.leased_on - kept.leased_on) < _TICK
    )


def find_out_of_order(history: History) -> Iterator[str]:
    rows = {row.id: row for row in history.rows if history.rules(row.queue).in_order}
    keys: defaultdict[tuple[str, str | None], list[JobRow]] = defaultdict(list)
    for id in history.ledger:
        if id in rows:
            keys[rows[id].queue, rows[id].key].append(rows[id])
    firsts = _first_leases(history)
    for jobs in keys.values():
        for before, after in pairwise(jobs):
            if after.id not in firsts:
                continue  # it never ran, which is the check `lost`
            if firsts.get(before.id, float("inf")) > firsts[after.id]:
                yield f"{after.id} of {after.key} started before {before.id}, which was committed first"
            elif before.ended_on is None or before.ended_on > firsts[after.id]:
                yield f"{after.id} of {after.key} started before {before.id} had ended"


def _first_leases(history: History) -> dict[UUID, float]:
    """Return when each job was leased for the first time, by the database and by the journals."""
    leases = [(end.id, end.leased_on) for end in history.ended]
    leases += [(row.id, row.leased_on) for row in history.rows if row.leased_on is not None]
    leases += [(start.id, start.leased_on) for start in history.starts]
    firsts: dict[UUID, float] = {}
    for id, leased_on in leases:
        firsts[id] = min(leased_on, firsts.get(id, leased_on))
    return firsts


def find_overlapped(history: History) -> Iterator[str]:
    leases: defaultdict[tuple[str, str | None], set[tuple[float, float, UUID]]] = defaultdict(set)
    kept_leases: list[JobRow | EndedAttempt] = [*history.ended, *history.rows]
    for kept in kept_leases:
        if history.rules(kept.queue).one_at_a_time and kept.leased_on is not None:
            end = kept.ended_on if kept.ended_on is not None else float("inf")
            leases[kept.queue, kept.key].add((kept.leased_on, end, kept.id))
    for (queue, key), found in leases.items():
        for before, after in pairwise(_without_repeats(found)):
            if after[0] < before[1]:
                yield f"{queue}, key {key}: {after[2]} was leased while {before[2]} was"


def _without_repeats(leases: set[tuple[float, float, UUID]]) -> list[tuple[float, float, UUID]]:
    """Return the leases in order. The last lease of a failed job is in its row and in its attempts, and counts once."""
    shortest: dict[tuple[float, UUID], float] = {}
    for start, end, id in leases:
        shortest[start, id] = min(end, shortest.get((start, id), end))
    return sorted((start, end, id) for (start, id), end in shortest.items())


def find_unexplained(history: History) -> Iterator[str]:
    yield from _unexplained_runs(history)
    yield from _unexplained_ends(history)
    spent = Counter(end.id for end in history.ended if end.outcome in _SPENT)
    for row in history.rows:
        if spent[row.id] > row.retry_limit + 1:
            yield f"{row.id} used {spent[row.id]} attempts, and its retry_limit is {row.retry_limit}"
        if row.state != "failed" or history.rules(row.queue).may_fail_early:
            continue
        if spent[row.id] <= row.retry_limit:
            yield f"{row.id} failed after {spent[row.id]} attempts, and its retry_limit is {row.retry_limit}"


def _unexplained_runs(history: History) -> Iterator[str]:
    """Find handler calls without a reason: neither did the attempt before end, nor did a crash lose its lease.

    Claims are committed asynchronously, so a crash of the server may undo one whose handler has begun.
    """
    ends = {(end.id, end.attempt): end.leased_on for end in history.ended}
    crashes = [fault for fault in history.faults if fault.kind == "restart"]
    runs: defaultdict[UUID, list[Start]] = defaultdict(list)
    for start in sorted(history.starts, key=lambda start: start.leased_on):
        runs[start.id].append(start)
    for calls in runs.values():
        for before, after in pairwise(calls):
            leased_on = ends.get((before.id, before.attempt))
            if leased_on is not None and abs(leased_on - before.leased_on) < _TICK:
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
        early = end.outcome == "lost" or (end.outcome == "expired" and lasted < expiries.get(end.id, 0) / 2)
        if early and not _has_fault(end, history):
            found = f"{end.outcome} after {lasted:.2f} s without a fault"
            yield f"{end.id}: attempt {end.attempt} of {end.worker} was {found}"


def _has_fault(end: EndedAttempt, history: History) -> bool:
    """Whether a fault explains the end. Any fault explains that of a process killed before it wrote its journal."""
    return any(
        (fault.target in (None, end.worker) or end.worker is None)
        and fault.at <= end.ended_on <= fault.until + _AFTERMATH
        for fault in history.faults
    )


CHECKS: dict[str, Find] = {
    "lost": find_lost,
    "unexpected": find_unexpected,
    "duplicated": find_duplicated,
    "stale_accepted": find_stale_accepted,
    "out_of_order": find_out_of_order,
    "overlapped": find_overlapped,
    "unexplained": find_unexplained,
}
