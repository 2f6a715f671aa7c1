"""Violations that are planted in a history, each under a key of its own, and the findings that an audit must have."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

import attrs

from trioboss.pipeline.synthetic.shapes import WORKER

__all__ = ["Planted", "Violation", "plant"]

_ROOT = UUID("6f0b6c1e-7d0a-4b53-9b39-5a8c1f6f2a10")
Row = dict[str, Any]


@attrs.frozen(order=True)
class Violation:
    """A finding that an audit must have."""

    kind: str
    queue: str
    job: str
    other_job: str | None


@attrs.define
class Planted:
    """Rows of history, and the violations in them."""

    jobs: list[Row] = attrs.field(factory=list)
    attempts: list[Row] = attrs.field(factory=list)
    violations: list[Violation] = attrs.field(factory=list)


@attrs.define
class _Case:
    """One key of a queue: jobs whose times are given in seconds after its beginning."""

    planted: Planted
    queue: str
    policy: str
    key: str
    begin: datetime
    seed: int

    def id(self, name: str) -> str:
        return str(uuid5(_ROOT, f"{self.seed}/{self.queue}/{self.key}/{name}"))

    def end(self, name: str, seq: int, start: float | None, end: float, **more: Any) -> None:
        """A job that ended. Unless ``more`` has other times, it was sent at second 0 and due then."""
        row = {
            "id": self.id(name),
            "queue": self.queue,
            "policy": self.policy,
            "state": "completed",
            "priority": 0,
            "singleton_key": self.key,
            "created_on": self.at(0),
            "start_after": self.at(more.pop("due", 0)),
            "started_on": None if start is None else self.at(start),
            "completed_on": self.at(end),
            "attempt": 1,
            "retry_count": 0,
            "retry_limit": 2,
            "seq": (1 << 50) + seq,
            "xid": 1 << 50,
            "worker": WORKER,
        }
        self.planted.jobs.append(row | more)

    def bad(self, name: str, start: float, end: float, attempt: int = 1, outcome: str = "failed") -> None:
        """An attempt that did not complete."""
        self.planted.attempts.append(
            {
                "job_id": self.id(name),
                "queue": self.queue,
                "attempt": attempt,
                "started_on": self.at(start),
                "ended_on": self.at(end),
                "outcome": outcome,
                "singleton_key": self.key,
                "xid": 1 << 50,
                "worker": WORKER,
            }
        )

    def expect(self, kind: str, job: str, other: str | None = None) -> None:
        found = Violation(kind, self.queue, self.id(job), self.id(other) if other else None)
        self.planted.violations.append(found)

    def at(self, seconds: float) -> datetime:
        return self.begin + timedelta(seconds=seconds)


def plant(count: int, begin: datetime, seed: int) -> Planted:
    """So many violations of each kind, and as many legitimate histories that look like some."""
    planted = Planted()
    for number in range(count):
        for queue, policy, add in _cases():
            add(_Case(planted, queue, policy, f"key-{number}", begin + timedelta(minutes=10 * number), seed))
    return planted


def _cases() -> Iterator[tuple[str, str, Callable[[_Case], None]]]:
    for policy in ("singleton", "stately", "exclusive", "key_strict_fifo"):
        yield f"planted/{policy}", policy, _overlap
    yield "planted/order", "key_strict_fifo", _order
    yield "planted/retry", "key_strict_fifo", _passed_retry
    yield "planted/limit", "standard", _over_limit
    yield "planted/twice", "standard", _two_ends
    yield "planted/none", "standard", _no_end
    yield "planted/early", "standard", _early
    yield "planted/backwards", "standard", _backwards
    yield "planted/short", "short", _both_waiting
    yield "planted/retries", "standard", _retries_left
    yield "planted/dead", "standard", _two_dead_letters
    yield "clean/lost", "singleton", _lost_lease
    yield "clean/resumed", "key_strict_fifo", _resumed
    yield "clean/deferred", "key_strict_fifo", _deferred
    yield "clean/retried", "standard", _retried


def _overlap(case: _Case) -> None:
    case.end("a", 1, 10, 20)
    case.end("b", 2, 15, 25, created_on=case.at(1), due=1)
    case.expect("overlap", "b", "a")
    if case.policy == "exclusive":  # which is one job at a time from the send on
        case.expect("waiting together", "b", "a")


def _order(case: _Case) -> None:
    case.end("a", 1, 30, 40)
    case.end("b", 2, 15, 25, created_on=case.at(1), due=1)
    case.expect("order", "b", "a")


def _passed_retry(case: _Case) -> None:
    case.bad("a", 10, 20)
    case.end("b", 2, 25, 30, created_on=case.at(1), due=1)
    case.end("a", 1, 40, 50, attempt=2, retry_count=1, due=20)
    case.expect("passed a retry", "b", "a")


def _over_limit(case: _Case) -> None:
    for attempt in (1, 2, 3):
        case.bad("a", 10 * attempt, 10 * attempt + 5, attempt)
    case.end("a", 1, 40, 45, attempt=4, retry_count=3, due=35)
    case.expect("over the limit", "a")


def _two_ends(case: _Case) -> None:
    case.end("a", 1, 10, 20)
    case.end("a", 1, 10, 21)
    case.expect("two ends", "a", "a")


def _no_end(case: _Case) -> None:
    # Sent after the first recorded attempt, that of a planted case at the latest: older jobs are not judged.
    case.end("a", 1, 90, 100, attempt=2, retry_count=1, due=70, created_on=case.at(60))
    case.expect("no end", "a")


def _early(case: _Case) -> None:
    case.end("a", 1, 10, 20, due=12)
    case.expect("early start", "a")
    case.bad("b", 10, 20)
    case.end("b", 2, 30, 40, attempt=2, retry_count=1, due=31)
    case.expect("early retry", "b")


def _backwards(case: _Case) -> None:
    case.end("a", 1, 10, 9)
    case.expect("end before start", "a")
    case.end("b", 2, 10, 20, created_on=case.at(11))
    case.expect("start before send", "b")


def _both_waiting(case: _Case) -> None:
    # Each is sent at an instant of its own: jobs of one statement are only possible findings.
    case.end("a", 1, 30, 40)
    case.end("b", 2, 35, 45, created_on=case.at(10), due=10)
    case.expect("waiting together", "b", "a")


def _retries_left(case: _Case) -> None:
    case.bad("a", 10, 20, outcome="expired")
    case.end("a", 1, 10, 20, state="failed")
    case.expect("retries left", "a")


def _two_dead_letters(case: _Case) -> None:
    case.bad("a", 10, 20)
    case.end("a", 1, 10, 20, state="failed", retry_limit=0, dead_letter="planted/dead")
    source = {"source_queue": case.queue, "source_id": case.id("a"), "created_on": case.at(20)}
    first, second = sorted(("b", "c"), key=case.id)
    for name in (first, second):
        case.end(name, 2, 30, 40, due=20, **source)
    case.expect("two dead letters", first, second)


def _lost_lease(case: _Case) -> None:
    case.bad("a", 10, 20, outcome="lost")
    case.end("b", 2, 20, 30)
    case.end("a", 1, 31, 40, attempt=2, retry_count=1, due=20)


def _resumed(case: _Case) -> None:
    case.end("a", 1, None, 5, state="cancelled", attempt=0)
    case.end("b", 2, 15, 25)
    case.end("a", 1, 40, 50, due=30)


def _deferred(case: _Case) -> None:
    case.end("a", 1, 40, 50, due=30)
    case.end("b", 2, 15, 35)


def _retried(case: _Case) -> None:
    case.bad("a", 10, 20)
    case.end("a", 1, 10, 20, state="failed", retry_limit=0)
    case.end("a", 1, 40, 50, attempt=2, retry_count=1, retry_limit=1, due=30)
