"""The rows that `compare` measures: each row has a queue, a fill, and a role of `programs/compared.py`."""

from collections.abc import Iterator
from typing import Any

import attrs

__all__ = ["Row", "Sizes", "claim_rows", "keyed_rows", "make_rows"]

_BATCHED = {"concurrency": 10, "prefetch": 1000}
_UNBATCHED = {"concurrency": 10}
_POLICIES = ("short", "singleton", "stately", "exclusive", "key_strict_fifo")
# These allow one queued job for each key, so a backlog of many jobs on few keys cannot exist.
_ONE_QUEUED = frozenset({"short", "stately", "exclusive"})
_FEW_KEYS = 100
_HELD_KEYS = 10

STANDARD = "drain batched, kept"
EMPTY = "claim of 10, nothing else queued"

Step = dict[str, Any]


@attrs.frozen
class Sizes:
    """How much is measured."""

    batched: int = 40_000
    unbatched: int = 12_000
    keyed: int = 20_000
    refilled: int = 5_000
    bulk: int = 100_000
    sent_by_one: int = 3_000
    sent_by_ten: int = 15_000
    claims: int = 100
    arrivals: int = 100_000
    many: int = 1_000_000
    latency: int = 300


QUICK = Sizes(
    batched=2_000,
    unbatched=500,
    keyed=1_000,
    refilled=300,
    bulk=3_000,
    sent_by_one=100,
    sent_by_ten=500,
    claims=10,
    arrivals=2_000,
    many=3_000,
    latency=30,
)


@attrs.frozen
class Row:
    """One measurement. `spec` is that of the program, `options` and `steps` are those of its fill."""

    name: str
    spec: dict[str, Any]
    options: dict[str, Any] = attrs.field(factory=dict)
    steps: tuple[Step, ...] = ()

    @property
    def measures_storage(self) -> bool:
        """Whether the bytes a job are measured afterwards: where history is kept, and nothing else is stored."""
        return self.name == STANDARD

    @property
    def counts_jobs(self) -> bool:
        """Whether the row is about jobs a second. Those of claims and latency are about milliseconds."""
        return self.spec["role"] not in ("claim", "work")


def make_rows(sizes: Sizes) -> list[Row]:
    """Return all rows, in their order."""
    return [*_plain_rows(sizes), *keyed_rows(sizes), *claim_rows(sizes), _latency_row(sizes)]


def _insert(jobs: int, keys: int = 0, prefix: str = "") -> Step:
    return {"do": "insert", "jobs": jobs, "keys": keys, "prefix": prefix}


def _drain(name: str, jobs: int, settings: dict[str, Any], keys: int = 0, **options: Any) -> Row:
    spec = {"role": "drain", "jobs": jobs, "settings": settings}
    return Row(name, spec, options, (_insert(jobs, keys),))


def _plain_rows(sizes: Sizes) -> Iterator[Row]:
    yield _drain("drain batched, nothing kept", sizes.batched, _BATCHED, keep_completed=False)
    yield _drain(STANDARD, sizes.batched, _BATCHED)
    yield _drain("drain unbatched, kept", sizes.unbatched, _UNBATCHED)
    yield Row("bulk sends", {"role": "bulk", "jobs": sizes.bulk})
    one = {"role": "send", "jobs": sizes.sent_by_one, "senders": 1}
    yield Row("single sends, 1 at a time", one)
    ten = {"role": "send", "jobs": sizes.sent_by_ten, "senders": 10}
    yield Row("single sends, 10 at a time", ten)


def keyed_rows(sizes: Sizes) -> Iterator[Row]:
    """Yield the drains of each policy: with a key for each job, and with few keys."""
    for policy in _POLICIES:
        name = f"keyed drain, {policy}, unique keys"
        yield _drain(name, sizes.keyed, _BATCHED, sizes.keyed, policy=policy)
    for policy in _POLICIES:
        name = f"keyed drain, {policy}, {_FEW_KEYS} keys"
        if policy in _ONE_QUEUED:
            spec = {"role": "refill", "jobs": sizes.refilled, "keys": _FEW_KEYS, "settings": _BATCHED}
            yield Row(f"{name}, refilled", spec, {"policy": policy})
        else:
            yield _drain(name, sizes.keyed, _BATCHED, _FEW_KEYS, policy=policy)


def claim_rows(sizes: Sizes) -> Iterator[Row]:
    """Yield the claims of 10 jobs; the first one is the reference of the others."""
    # Held jobs are claimed when the template is filled, and must not expire before the last run.
    options = {"policy": "key_strict_fifo", "expire_in": 86_400}

    def row(name: str, *steps: Step, refill: bool = False) -> Row:
        spec = {"role": "claim", "claims": sizes.claims, "refill": refill}
        return Row(name, spec, options, steps)

    free = _insert(10 * sizes.claims, 10 * sizes.claims, "free/")
    held = (_insert(_HELD_KEYS, _HELD_KEYS), {"do": "claim", "jobs": _HELD_KEYS})
    yield row(EMPTY, refill=True)
    yield row(
        f"claim of 10, {sizes.arrivals:,} arrivals behind held keys",
        *held,
        _insert(sizes.arrivals, _HELD_KEYS),
        free,
    )
    yield row(
        f"claim of 10, {sizes.arrivals:,} new jobs on as many keys", _insert(sizes.arrivals, sizes.arrivals)
    )
    yield row(
        f"claim of 10, {sizes.many:,} jobs on as many keys",
        _insert(sizes.many, sizes.many),
        {"do": "admit", "jobs": sizes.many},
    )


def _latency_row(sizes: Sizes) -> Row:
    return Row("idle latency", {"role": "work", "jobs": sizes.latency})
