"""Checks of what is allowed once: by a policy, by send_once, by send_singleton, or in a slot of a throttle.

A send that was acknowledged has happened at some time between its call and its answer, and a job has certainly existed
from the answer on. Only what is certain is judged. Jobs that were cancelled are left out: they make room for others.
"""

from collections import defaultdict
from collections.abc import Iterator
from uuid import UUID

from tests.chaos.harness.explaining import CLOCKS
from tests.chaos.harness.history import History, QueueRules, Send

__all__ = ["find_over_limit"]

Life = tuple[float, float, UUID]
Group = tuple[str, str, str | None]


def find_over_limit(history: History) -> Iterator[str]:
    yield from _find_second_in_slot(history)
    changed = {change.id for change in history.changes}
    rows = {row.id: row for row in history.rows}
    firsts = history.first_leases()
    lives: defaultdict[Group, list[Life]] = defaultdict(list)
    for send in history.sends:
        if send.answer != "ok" or send.answered is None or send.id not in rows or send.id in changed:
            continue
        ended = rows[send.id].ended_on
        ends = float("inf") if ended is None else ended
        for limit in _limits(send, history.rules(send.queue)):
            until = ends if limit.endswith("alive") else min(ends, firsts.get(send.id, ends))
            if (
                send.answered < until
            ):  # otherwise it was leased or ended before its answer: nothing is certain
                lives[limit, send.queue, send.key].append((send.answered, until, send.id))
    for group, found in lives.items():
        yield from _find_overlaps(group, found)


def _limits(send: Send, rules: QueueRules) -> Iterator[str]:
    """Yield what allows one such job: while it has not ended (alive), or while it was never active (created)."""
    if rules.one_alive:
        yield "policy: alive"
    if rules.one_created:
        yield "policy: created"
    if send.method == "send_once":
        yield "send_once: alive"
    if send.method == "send_singleton":
        yield "send_singleton: created"


def _find_overlaps(group: Group, lives: list[Life]) -> Iterator[str]:
    limit, queue, key = group
    lives.sort()
    _, last_until, last = lives[0]
    for since, until, id in lives[1:]:
        if since < last_until - CLOCKS:
            yield f"{limit}: {id} and {last} of {key} in {queue} were there at the same time"
        if until > last_until:
            last_until, last = until, id


def _find_second_in_slot(history: History) -> Iterator[str]:
    """Find two accepted jobs of one throttle slot. Slots are counted from the beginning of 1970, by the wall clock."""
    changed = {change.id for change in history.changes}
    seen: dict[tuple[str, str | None, int], UUID] = {}
    for send in history.sends:
        if send.slot is None or send.answer != "ok" or send.answered is None or send.id in changed:
            continue
        slot = int((send.invoked + history.wall_ahead) // send.slot)
        if slot != int((send.answered + history.wall_ahead) // send.slot):
            continue  # it may have been in either slot
        first = seen.setdefault((send.queue, send.key, slot), send.id)
        if first != send.id:
            yield f"{send.id} and {first} of {send.key} in {send.queue} are in one throttle slot"
