"""Checks of order: by commit, by priority, and one lease of a key at a time."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from uuid import UUID

from tests.chaos.harness.explaining import CRASHES
from tests.chaos.harness.history import EndedAttempt, History, JobRow

__all__ = ["find_out_of_order", "find_overlapped"]

# A job may be passed by the jobs of claims that began before it was there, or while another claim held it.
_SETTLING = 1.0  # seconds around which a job counts as waiting
_MAY_PASS = (
    50  # jobs of a lower priority that may start while it waits: several workers claim up to 20 at once
)


def find_out_of_order(history: History) -> Iterator[str]:
    yield from _find_started_before(history)
    yield from _find_passed(history)


def _find_started_before(history: History) -> Iterator[str]:
    """Find jobs of a key that started before, or beside, one that was committed earlier."""
    rows = {row.id: row for row in history.rows if history.rules(row.queue).in_order}
    keys: defaultdict[tuple[str, str | None], list[JobRow]] = defaultdict(list)
    for id in history.ledger:
        if id in rows:
            keys[rows[id].queue, rows[id].key].append(rows[id])
    firsts = history.first_leases()
    for jobs in keys.values():
        for before, after in pairwise(jobs):
            if after.id not in firsts:
                continue  # it never ran, which is the check `lost`
            if firsts.get(before.id, float("inf")) > firsts[after.id]:
                yield f"{after.id} of {after.key} started before {before.id}, which was committed first"
            elif before.ended_on is None or before.ended_on > firsts[after.id]:
                yield f"{after.id} of {after.key} started before {before.id} had ended"


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


def _find_passed(history: History) -> Iterator[str]:
    """Find jobs that waited while many jobs of a lower priority started.

    A crash of the server may undo a claim that no handler call proves, so a wait with a crash in it is not judged.
    """
    firsts = history.first_leases()
    crashes = [fault for fault in history.faults if fault.kind in CRASHES]
    changed = {change.id for change in history.changes}
    leases: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    for send in history.sends:
        if history.rules(send.queue).by_priority and send.id in firsts:
            leases[send.queue, send.priority].append(firsts[send.id])
    for times in leases.values():
        times.sort()
    for send in history.sends:
        if send.answered is None or send.after or send.id in changed or send.id not in firsts:
            continue
        since, until = send.answered + _SETTLING, firsts[send.id] - _SETTLING
        if until <= since or any(crash.until >= since and crash.at <= until for crash in crashes):
            continue
        lower = [times for (queue, p), times in leases.items() if queue == send.queue and p < send.priority]
        passed = sum(bisect_left(times, until) - bisect_left(times, since) for times in lower)
        if passed > _MAY_PASS:
            yield f"{send.id} of priority {send.priority} waited while {passed} jobs of lower ones started"
