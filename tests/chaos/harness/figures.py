"""The events of a run, in numbers."""

from collections import Counter, defaultdict
from itertools import pairwise
from statistics import median
from uuid import UUID

from tests.chaos.harness.explaining import REASONS, explains
from tests.chaos.harness.history import History, Start
from tests.chaos.harness.lateness import judged_seconds

__all__ = ["count", "count_by_fault"]


def count(history: History) -> dict[str, float]:
    """Return numbers by their names, in the order of a table."""
    faults = Counter(fault.kind for fault in history.faults)
    states = Counter(row.state for row in history.rows)
    answers = Counter(send.answer for send in history.sends)
    rows = {row.id for row in history.rows}
    recoveries = sorted(_recoveries(history))
    return {
        "sends": len(history.sends),
        "acknowledged": answers["ok"],
        "refused by a policy": answers["refused"],
        "rolled back": answers["rolled_back"],
        "outcome unknown": answers["unknown"],
        "outcome unknown, job exists": sum(
            send.answer == "unknown" and send.id in rows for send in history.sends
        ),
        "completed": states["completed"],
        "failed": states["failed"],
        "cancelled": states["cancelled"],
        "sends by send_once, send_singleton, send_throttled": sum(
            send.method != "send" for send in history.sends
        ),
        "deferred": sum(send.after > 0 for send in history.sends),
        "keys": len({(send.queue, send.key) for send in history.sends if send.key}),
        "ticks of the schedule": len(history.ticks),
        "dead letter jobs": sum(row.source_id is not None for row in history.rows),
        "handler calls": len(history.starts),
        "handler calls beyond one for each job": len(history.starts)
        - len({start.id for start in history.starts}),
        "attempts lost": sum(end.outcome == "lost" for end in history.ended),
        "attempts released": sum(end.outcome == "released" for end in history.ended),
        "attempts expired": sum(end.outcome == "expired" for end in history.ended),
        "handler calls that overlapped their successor": _overlaps(history),
        "late results refused": sum(not each.accepted for each in history.settled),
        "seconds from kill to the next start, median": _share(recoveries, 0.5),
        "seconds from kill to the next start, 99 %": _share(recoveries, 0.99),
        **_memory(history),
        "seconds in which the start of a job was judged": judged_seconds(history),
        "worker processes of another version": history.other_versions,
        **{f"fault: {kind}": number for kind, number in sorted(faults.items())},
    }


def count_by_fault(history: History) -> dict[str, tuple[int, float, int]]:
    """Return for each kind of fault how often it happened, for how many seconds, and how many leases it may have taken.

    Faults overlap: a lease counts for each kind that explains its end.
    """
    found: dict[str, tuple[int, float, int]] = {}
    ended = [end for end in history.ended if end.outcome in REASONS]  # a long run has a million others
    for kind in sorted({fault.kind for fault in history.faults}):
        faults = [fault for fault in history.faults if fault.kind == kind]
        seconds = sum(fault.until - fault.at for fault in faults)
        taken = sum(any(explains(fault, end) for fault in faults) for end in ended)
        found[kind] = (len(faults), seconds, taken)
    return found


def _memory(history: History) -> dict[str, float]:
    sizes = [each.megabytes for each in history.memory]
    if not sizes:
        return {}
    quarter = max(1, len(sizes) // 4)
    return {
        "MB of a worker, second quarter of the run": median(sizes[quarter : 2 * quarter] or sizes),
        "MB of a worker, last quarter": median(sizes[-quarter:]),
    }


def _by_job(history: History) -> dict[UUID, list[Start]]:
    calls: defaultdict[UUID, list[Start]] = defaultdict(list)
    for start in sorted(history.starts, key=lambda start: start.at):
        calls[start.id].append(start)
    return calls


def _overlaps(history: History) -> int:
    """Return how many handler calls ended after the next call for the same job had begun."""
    return sum(
        before.ended is not None and before.ended > after.at
        for calls in _by_job(history).values()
        for before, after in pairwise(calls)
    )


def _recoveries(history: History) -> list[float]:
    """Return the seconds from each SIGKILL to the next start of a job it interrupted, where no key was in the way."""
    kills: defaultdict[str | None, list[float]] = defaultdict(list)
    for fault in history.faults:
        if fault.kind == "kill":
            kills[fault.target].append(fault.at)
    free = {row.id for row in history.rows if not history.rules(row.queue).one_at_a_time}
    waits = []
    for id, calls in _by_job(history).items():
        for before, after in pairwise(calls):
            killed = min((at for at in kills[before.process] if at >= before.at), default=after.at)
            if id in free and before.ended is None and killed < after.at:
                waits.append(after.at - killed)
    return waits


def _share(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("nan")
