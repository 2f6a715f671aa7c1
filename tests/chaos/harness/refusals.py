"""Checks of refusals: a send that returns no job needs another job, or a slot, that is in its way."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate

import attrs

from tests.chaos.harness.explaining import CLOCKS
from tests.chaos.harness.history import History, QueueRules, Send

__all__ = ["find_refused"]

Group = tuple[str, str, str | None]
Span = tuple[float, float]


def find_refused(history: History) -> Iterator[str]:
    refused = [send for send in history.sends if send.answer == "refused"]
    if not refused:
        return
    hindrances = _find_hindrances(history)
    # The jobs of the nemesis have no key, and may wait for years.
    strange = min(
        (fault.at for fault in history.faults if fault.kind == "strange_rows"), default=float("inf")
    )
    for send in refused:
        until = float("inf") if send.answered is None else send.answered
        groups = list(_groups(send, history.rules(send.queue)))
        if any(group in hindrances and hindrances[group].meet(send.invoked, until) for group in groups):
            continue
        if not (groups and send.key is None and strange <= until):
            yield f"{send.id} of {send.key} was refused in {send.queue} by {send.method}, and nothing was in its way"


def _groups(send: Send, rules: QueueRules) -> Iterator[Group]:
    """Yield what such a send shares with those that may be in its way."""
    if _has_limit(rules):
        yield "policy", send.queue, send.key
    if send.method != "send":
        yield send.method, send.queue, send.key


def _has_limit(rules: QueueRules) -> bool:
    return rules.one_created or rules.one_alive


def _find_hindrances(history: History) -> "dict[Group, _Spans]":
    rows = {row.id: row for row in history.rows}
    found: defaultdict[Group, list[Span]] = defaultdict(list)
    for send in history.sends:
        for group in _groups(send, history.rules(send.queue)):
            if send.slot is not None and group[0] == send.method:
                # A slot is taken whether or not its job has ended. One that a policy refuses returns it afterwards.
                if send.answer in ("ok", "unknown") or _has_limit(history.rules(send.queue)):
                    found[group].append((send.invoked - send.slot, send.invoked + 2 * send.slot))
            elif (row := rows.get(send.id)) is not None:
                found[group].append((send.invoked, float("inf") if row.ended_on is None else row.ended_on))
    return {group: _Spans.of(spans) for group, spans in found.items()}


@attrs.frozen
class _Spans:
    """Spans of time, by their beginning, each with the latest end up to there, and whose end that is."""

    starts: list[float]
    ends: list[float]

    @classmethod
    def of(cls, spans: list[Span]) -> "_Spans":
        spans.sort()
        return cls([start for start, _ in spans], list(accumulate((end for _, end in spans), max)))

    def meet(self, since: float, until: float) -> bool:
        """Whether one of them has begun by `until`, and not ended by `since`."""
        place = bisect_right(self.starts, until + CLOCKS)
        return place > 0 and self.ends[place - 1] >= since - CLOCKS
