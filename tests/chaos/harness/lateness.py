"""Checks of times. A time is judged only where no other fault can be the reason of a delay."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from uuid import UUID

from tests.chaos.harness.explaining import CLOCKS
from tests.chaos.harness.history import Fault, History, Start

__all__ = ["QUIET", "find_early", "find_late", "judged_seconds"]

_TAKEN_OVER = (
    10.0  # seconds in which the jobs of a killed worker run elsewhere (P7), besides their retry delay
)
_STARTED = 10.0  # seconds in which a job starts that nothing holds up
_STOPPED = 9.0  # seconds from SIGTERM to the end: the grace of the workers, 2 s, and 7 (P9)
QUIET = 10.0  # seconds without a fault after which the delays of earlier ones are over
_FEW = 100  # jobs that may wait or run already
_HARMLESS = ("snapshot", "strange_rows")


def find_early(history: History) -> Iterator[str]:
    firsts = history.first_leases()
    for send in history.sends:
        waited = firsts.get(send.id, float("inf")) - send.invoked
        if send.after and waited < send.after - CLOCKS:
            yield f"{send.id} was leased after {waited:.2f} s, and was deferred by {send.after:g}"
    for tick in history.ticks:
        if firsts.get(tick.id, float("inf")) < tick.due - CLOCKS:
            yield f"{tick.id} was leased before {tick.due:.2f}, when its tick was due"


def judged_seconds(history: History) -> float:
    """Return for how long nothing was broken, nor just had been: only then is it judged when a job starts."""
    if not history.starts:
        return 0.0
    first, last = history.starts[0].at, max(start.at for start in history.starts)
    starts, ends = _quiet_times(_harmful(history))
    return sum(max(0.0, min(end, last) - max(start, first)) for start, end in zip(starts, ends, strict=True))


def find_late(history: History) -> Iterator[str]:
    faults = _harmful(history)
    killed = [
        fault
        for fault in faults
        if fault.kind in ("kill", "poison") and _is_alone(fault, faults, _TAKEN_OVER)
    ]
    yield from _taken_over_late(killed, history)
    for fault in faults:
        if fault.kind == "term" and _is_alone(fault, faults, _STOPPED):
            yield from _stopped_late(fault)
    yield from _started_late(history, faults)
    yield from _ticked_late(history, faults)


def _harmful(history: History) -> list[Fault]:
    return [fault for fault in history.faults if fault.kind not in _HARMLESS]


def _stopped_late(term: Fault) -> Iterator[str]:
    seconds = term.until - term.at
    if seconds > _STOPPED:
        yield f"{term.target} ended {seconds:.1f} s after SIGTERM"


def _is_alone(fault: Fault, faults: list[Fault], seconds: float) -> bool:
    """Whether no other fault happened for a while before it, and in these seconds after it."""
    return not any(
        other is not fault and other.at <= fault.at + seconds and other.until >= fault.at - QUIET
        for other in faults
    )


def _taken_over_late(kills: list[Fault], history: History) -> Iterator[str]:
    """Find jobs of killed workers that did not run elsewhere in time. Jobs whose key may be held up are not judged."""
    rows = {row.id: row for row in history.rows}
    starts: defaultdict[UUID, list[Start]] = defaultdict(list)
    broken_off: defaultdict[str, list[Start]] = defaultdict(list)
    for start in history.starts:
        starts[start.id].append(start)
        if start.ended is None:
            broken_off[start.process].append(start)
    for kill in kills:
        for start in broken_off[kill.target or ""]:
            row = rows.get(start.id)
            rules = history.rules("" if row is None else row.queue)
            if rules.one_at_a_time or not -QUIET < start.at - kill.at <= 0:
                continue
            seen = [other.at for other in starts[start.id] if other.at > start.at]
            if row is not None and row.ended_on is not None:
                seen.append(row.ended_on)
            after = min(seen, default=float("inf")) - kill.at
            if after > _TAKEN_OVER + rules.retry_delay:
                yield f"{start.id} ran {after:.1f} s after {kill.target} was killed"


def _started_late(history: History, faults: list[Fault]) -> Iterator[str]:
    """Find jobs that were sent while nothing was broken and few others were there, and waited for long."""
    firsts = history.first_leases()
    changed = {change.id for change in history.changes}
    starts, ends = _quiet_times(faults)
    sent = sorted(send.invoked for send in history.sends)
    ended = sorted(row.ended_on for row in history.rows if row.ended_on is not None)
    for send in history.sends:
        rules = history.rules(send.queue)
        if send.answer != "ok" or send.answered is None or send.id in changed:
            continue
        if rules.one_at_a_time or rules.in_order:
            continue
        ready = send.answered + send.after
        place = bisect_right(starts, send.invoked) - 1
        if place < 0 or ends[place] < ready + _STARTED:
            continue
        if bisect_right(sent, send.invoked) - bisect_right(ended, send.invoked) > _FEW:
            continue
        waited = firsts.get(send.id, float("inf")) - ready
        if waited > _STARTED:
            yield f"{send.id} in {send.queue} waited for {waited:.1f} s, and nothing was broken"


def _ticked_late(history: History, faults: list[Fault]) -> Iterator[str]:
    """Find jobs of a schedule that were late while nothing was broken. Few others are there, so they need not wait."""
    firsts = history.first_leases()
    starts, ends = _quiet_times(faults)
    working = min((start.at for start in history.starts), default=float("inf"))
    for tick in history.ticks:
        if tick.due < working:
            continue  # the workers were still starting
        place = bisect_right(starts, tick.due) - 1
        waited = firsts.get(tick.id, float("inf")) - tick.due
        if place >= 0 and ends[place] >= tick.due + _STARTED < tick.due + waited:
            yield f"{tick.id} of the tick at {tick.due:.0f} waited for {waited:.1f} s, and nothing was broken"


def _quiet_times(faults: list[Fault]) -> tuple[list[float], list[float]]:
    """Return when each time without faults, or their aftermath, began and ended."""
    starts, ends = [float("-inf")], []
    for fault in sorted(faults, key=lambda fault: fault.at):
        if fault.at > starts[-1]:
            ends.append(fault.at)
            starts.append(fault.until + QUIET)
        else:
            starts[-1] = max(starts[-1], fault.until + QUIET)
    return starts, [*ends, float("inf")]
