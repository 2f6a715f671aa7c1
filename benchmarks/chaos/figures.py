"""What is worth telling of a history besides its violations."""

from collections import Counter, defaultdict
from itertools import pairwise
from uuid import UUID

from benchmarks.chaos.history import History, Start

__all__ = ["count"]


def count(history: History) -> dict[str, float]:
    """Numbers by their names, in the order of a table."""
    faults = Counter(fault.kind for fault in history.faults)
    states = Counter(row.state for row in history.rows)
    answers = Counter(send.answer for send in history.sends)
    rows = {row.id for row in history.rows}
    reclaims = sorted(_reclaims(history))
    return {
        "sends": len(history.sends),
        "acknowledged": answers["ok"],
        "refused by a policy": answers["refused"],
        "rolled back": answers["undone"],
        "outcome unknown": answers["unknown"],
        "recovered (unknown, and there)": sum(
            send.answer == "unknown" and send.id in rows for send in history.sends
        ),
        "completed": states["completed"],
        "failed": states["failed"],
        "dead letters": sum(row.source_id is not None for row in history.rows),
        "runs of handlers": len(history.starts),
        "runs more than jobs": len(history.starts) - len({start.id for start in history.starts}),
        "attempts lost": sum(end.outcome == "lost" for end in history.ended),
        "attempts expired": sum(end.outcome == "expired" for end in history.ended),
        "runs that met their successor": _zombies(history),
        "late results refused": sum(not each.accepted for each in history.settled),
        "seconds from kill to the next start, median": _share(reclaims, 0.5),
        "seconds from kill to the next start, 99 %": _share(reclaims, 0.99),
        **{f"fault: {kind}": number for kind, number in sorted(faults.items())},
    }


def _by_job(history: History) -> dict[UUID, list[Start]]:
    runs: defaultdict[UUID, list[Start]] = defaultdict(list)
    for start in sorted(history.starts, key=lambda start: start.at):
        runs[start.id].append(start)
    return runs


def _zombies(history: History) -> int:
    """Runs that came to their end while the next run of the same job was under way, or after it."""
    return sum(
        before.ended is not None and before.ended > after.at
        for mine in _by_job(history).values()
        for before, after in pairwise(mine)
    )


def _reclaims(history: History) -> list[float]:
    """From each SIGKILL to the next start of what it interrupted, if nothing but its turn was in the way."""
    kills: defaultdict[str | None, list[float]] = defaultdict(list)
    for fault in history.faults:
        if fault.kind == "kill":
            kills[fault.target].append(fault.at)
    free = {row.id for row in history.rows if not history.rules(row.queue).one_at_a_time}
    waits = []
    for id, mine in _by_job(history).items():
        for before, after in pairwise(mine):
            killed = min((at for at in kills[before.who] if at >= before.at), default=after.at)
            if id in free and before.ended is None and killed < after.at:
                waits.append(after.at - killed)
    return waits


def _share(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("nan")
