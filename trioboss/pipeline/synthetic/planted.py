"""Violations that are planted in a history, each in a line of its own, and what an audit should find of them."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

import attrs

__all__ = ["Planted", "Violation", "plant"]

_ROOT = UUID("6f0b6c1e-7d0a-4b53-9b39-5a8c1f6f2a10")
Row = dict[str, Any]


@attrs.frozen(order=True)
class Violation:
    """What an audit should find."""

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
    """One line of a queue: jobs whose attempts are told in seconds after its beginning."""

    planted: Planted
    queue: str
    policy: str
    key: str
    begin: datetime
    seed: int

    def id(self, name: str) -> str:
        return str(uuid5(_ROOT, f"{self.seed}/{self.queue}/{self.key}/{name}"))

    def end(self, name: str, seq: int, start: float | None, end: float, **more: Any) -> None:
        """A job that ended; sent at second 0 and able to start then, if it is not told otherwise."""
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
        }
        self.planted.jobs.append(row | more)

    def bad(self, name: str, start: float, end: float, attempt: int = 1, outcome: str = "failed") -> None:
        """An attempt that did not end well."""
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
            }
        )

    def expect(self, kind: str, job: str, other: str | None = None) -> None:
        found = Violation(kind, self.queue, self.id(job), self.id(other) if other else None)
        self.planted.violations.append(found)

    def at(self, seconds: float) -> datetime:
        return self.begin + timedelta(seconds=seconds)


def plant(count: int, begin: datetime, seed: int) -> Planted:
    """So many violations of each kind, and as many histories that only look like some."""
    planted = Planted()
    for number in range(count):
        for queue, policy, tell in _cases():
            tell(_Case(planted, queue, policy, f"key-{number}", begin + timedelta(minutes=10 * number), seed))
    return planted


def _cases() -> Iterator[tuple[str, str, Callable[[_Case], None]]]:
    for policy in ("singleton", "stately", "exclusive", "key_strict_fifo"):
        yield f"planted/{policy}", policy, _overlap
    yield "planted/order", "key_strict_fifo", _order
    yield "planted/retry", "key_strict_fifo", _passed_retry
    yield "planted/limit", "standard", _over_limit
    yield "planted/twice", "standard", _two_ends
    yield "planted/none", "standard", _no_end
    yield "honest/lost", "singleton", _lost_lease
    yield "honest/resumed", "key_strict_fifo", _resumed
    yield "honest/deferred", "key_strict_fifo", _deferred
    yield "honest/retried", "standard", _taken_back


def _overlap(case: _Case) -> None:
    case.end("a", 1, 10, 20)
    case.end("b", 2, 15, 25)
    case.expect("overlap", "b", "a")


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
    # Sent after the first attempt on record, that of a planted case at the latest: older jobs are not judged.
    case.end("a", 1, 90, 100, attempt=2, retry_count=1, due=70, created_on=case.at(60))
    case.expect("no end", "a")


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


def _taken_back(case: _Case) -> None:
    case.bad("a", 10, 20)
    case.end("a", 1, 10, 20, state="failed", retry_limit=0)
    case.end("a", 1, 40, 50, attempt=2, retry_count=1, retry_limit=1, due=30)
