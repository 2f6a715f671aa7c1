"""The made-up queues. Everything follows from a job's number in its queue, by whole numbers, in cycles.

`rows.py` has the same rules as expressions of Spark. Here they are computed job by job and summed up over cycles: so
the statistics of a history are known without reading it.
"""

from collections import Counter
from collections.abc import Iterator
from math import ceil, gcd

import attrs

__all__ = [
    "CYCLE",
    "ERRORS",
    "PICK_UP",
    "RETRY_DELAY",
    "SHAPES",
    "WORKER",
    "Facts",
    "Shape",
    "facts_of",
    "kind_of",
]

CYCLE = 1000
WORKER = "5d0f3c7e-3a55-5f0e-8b0a-6d9a0c1b2e4f"
"""The id of the worker that ran all jobs."""
RETRY_DELAY = 2000
"""Milliseconds until a failed attempt is retried."""
PICK_UP = 500
"""Milliseconds from when a retry may start to its start."""

ERRORS = (
    (
        "TimeoutError",
        "no answer from 10.0.0.7:{} after 30 s",
        "TimeoutError: no answer from <address> after <n> s",
    ),
    ("ValueError", "order {} has no customer", "ValueError: order <n> has no customer"),
    ("KeyError", "'basket {}'", "KeyError: 'basket <n>'"),
)
"""Name, message with the number of the job, fingerprint."""

_LONGEST = 60_000
"""Milliseconds within which any job of a key is over."""


@attrs.frozen
class Shape:
    """A queue: its share in a hundred jobs, how long its jobs run, and whether some of them fail for good."""

    queue: str
    policy: str
    share: int
    run: int
    """The shortest run, in milliseconds; the longest is four times as long."""
    keys: int = 0
    dies: bool = False
    dead_letter: str | None = None

    def jobs(self, total: int, before: int) -> int:
        """How many of so many jobs are of this queue, if the queues before it have so many in a hundred."""
        return total // 100 * self.share + min(max(total % 100 - before, 0), self.share)

    def lines(self, jobs: int, seconds: float) -> int:
        """How many keys there are: enough for the jobs of one key never to meet. It fits the cycle."""
        if not self.keys:
            return 0
        needed = max(self.keys, ceil(jobs * _LONGEST / 1000 / (seconds * 0.4)))
        return self.keys if needed == self.keys else CYCLE * ceil(needed / CYCLE)


SHAPES = (
    Shape("email", "standard", 50, 40, dies=True),
    Shape("webhooks", "standard", 20, 150, dies=True, dead_letter="dead"),
    Shape("orders", "key_strict_fifo", 15, 200, keys=500),
    Shape("sync", "singleton", 8, 900, keys=50),
    Shape("reports", "stately", 4, 2500, keys=10),
    Shape("billing", "exclusive", 3, 400, keys=100),
)


def kind_of(shape: Shape, number: int) -> str:
    """The fate of a job: plain, or its first attempt is released, lost or failed, or all its attempts fail."""
    place = number % 200
    if place == 101:
        return "released"
    if place == 53:
        return "lost"
    if place % 50 == 17 and shape.dies:
        return "dead"
    return "failed" if place % 10 == 3 else "plain"


def run_of(shape: Shape, number: int, lines: int) -> int:
    """How long each of its attempts runs, in milliseconds. The first key of a queue takes twice as long."""
    place = number * 367 % CYCLE
    run = shape.run + 3 * shape.run * place * place // (CYCLE * CYCLE)
    return 2 * run if lines and number % lines == 0 else run


def wait_of(number: int) -> int:
    """How long it waits for its first attempt, in milliseconds."""
    place = number * 631 % CYCLE
    return 5 + place * place * place // 1_000_000


@attrs.define
class Facts:
    """The statistics of a queue. Times are in milliseconds."""

    jobs: int = 0
    completed: int = 0
    failed: int = 0
    attempts: Counter[str] = attrs.field(factory=Counter)
    """By how they ended."""
    worker_time: int = 0
    wasted_time: int = 0
    runs: Counter[int] = attrs.field(factory=Counter)
    waits: Counter[int] = attrs.field(factory=Counter)
    errors: Counter[str] = attrs.field(factory=Counter)
    """By fingerprint."""

    def percentile(self, name: str, share: float) -> int:
        """The run or wait that so large a share of them does not exceed."""
        counts: Counter[int] = {"runs": self.runs, "waits": self.waits}[name]
        counted = sorted(counts.items())
        rank = ceil(share * sum(times for _, times in counted) - 1e-9)
        for value, times in counted:
            rank -= times
            if rank <= 0:
                return value
        raise ValueError(name)


def facts_of(shape: Shape, jobs: int, seconds: float) -> Facts:
    """The facts of so many jobs over so many seconds."""
    facts, lines = Facts(), shape.lines(jobs, seconds)
    for number, times in _cycle(jobs, lines):
        _add(facts, shape, number, lines, times)
    return facts


def _cycle(jobs: int, lines: int) -> Iterator[tuple[int, int]]:
    """One job for each that differs from the others, and how many there are like it."""
    length = CYCLE * lines // gcd(CYCLE, lines) if lines else CYCLE
    for number in range(min(length, jobs)):
        yield number, (jobs - number + length - 1) // length


def _add(facts: Facts, shape: Shape, number: int, lines: int, times: int) -> None:
    kind, run, wait = kind_of(shape, number), run_of(shape, number, lines), wait_of(number)
    bad = {"plain": 0, "dead": 3}.get(kind, 1)
    outcome = kind if kind in ("released", "lost") else "failed"
    facts.jobs += times
    facts.completed += times * (kind != "dead")
    facts.failed += times * (kind == "dead")
    facts.attempts[outcome] += times * bad
    facts.attempts["completed"] += times * (kind != "dead")
    facts.worker_time += times * run * (bad + (kind != "dead"))
    facts.wasted_time += times * run * bad
    facts.runs[run] += times * (bad + (kind != "dead"))
    facts.waits[wait if kind == "plain" else PICK_UP] += times
    if outcome == "failed" and bad:
        facts.errors[ERRORS[number % CYCLE % 3][2]] += times * bad
    if kind == "lost":
        facts.errors["(lost)"] += times
