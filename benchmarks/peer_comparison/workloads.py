"""The work that all queues are given, its metrics and floors, and which peers do comparable work."""

from collections.abc import Callable
from typing import Any, Literal

import attrs

from benchmarks.harness.draining import drain
from benchmarks.harness.floor import floor_bulk, floor_drain, floor_latency, floor_sends
from benchmarks.harness.options import Options
from benchmarks.harness.percentiles import curve, summarize
from benchmarks.harness.queue_programs import QueueProgram
from benchmarks.harness.runs import measure_bulk, measure_latency, measure_sends, measure_steady
from benchmarks.harness.server import Server
from benchmarks.peer_comparison.catalogue import CATALOGUE, WORKLOADS, Peer

__all__ = ["ALL", "DRAINS", "Floor", "Metric", "Workload", "comparable_peers"]

DRAINS = ("T3", "T3x2", "T5")

Result = dict[str, Any]


@attrs.frozen
class Metric:
    """One column. `better`: whether low or high values are good; None: for information only."""

    key: str
    title: str
    better: Literal["low", "high"] | None = None


@attrs.frozen
class Floor:
    """A measurement without a queue."""

    name: str
    run: Callable[[Server, Options], Result]
    batched: bool | None = None
    """Whether it is the floor of batched or of unbatched queues; None: of all."""


@attrs.frozen
class Workload:
    """One table."""

    name: str
    metrics: tuple[Metric, ...]
    run: Callable[[Server, QueueProgram, Peer, Options], Result] | None
    """None: all queues are observed side by side."""
    floors: tuple[Floor, ...] = ()
    uses: Literal["latency", "drain", ""] = ""
    """Which settings of the catalogue."""

    @property
    def title(self) -> str:
        """The title of its table."""
        return f"{self.name}: {WORKLOADS[self.name]}"


def comparable_peers(ours: Peer, workload: str) -> list[Peer]:
    """Return the peers that a configuration of trioboss is compared with.

    Drains are comparable if both are batched or both are not, and if both keep history, or at least a log.
    """
    peers = [peer for peer in CATALOGUE if peer.package is not None and workload in peer.workloads]
    if workload not in DRAINS:
        return peers
    comparable = [peer for peer in peers if peer.batched == ours.batched]
    return [
        peer for peer in comparable if peer.keeps != "nothing" or ours.keeps == "nothing" or not ours.batched
    ]


def _paced(count: tuple[int, int], rate: float) -> Callable[[Server, QueueProgram, Peer, Options], Result]:
    def run(server: Server, queue: QueueProgram, peer: Peer, options: Options) -> Result:
        result = measure_latency(server, queue, peer.latency, count=options.size(*count), rate=rate)
        values = result.pop("ms")
        return {**result, **attrs.asdict(summarize(values)), "curve_ms": curve(values)}

    return run


def _sends(server: Server, queue: QueueProgram, peer: Peer, options: Options) -> Result:
    seconds = options.size(3.0, 0.5)
    one = measure_sends(server, queue, peer.latency, senders=1, seconds=seconds)
    ten = measure_sends(server, queue, peer.latency, senders=10, seconds=seconds)
    return {
        "rate_1": one["rate"],
        "rate_10": ten["rate"],
        "client_us": one["client_us"],
        "noise": max(one["noise"], ten["noise"]),
    }


def _bulk(server: Server, queue: QueueProgram, peer: Peer, options: Options) -> Result:
    return measure_bulk(server, queue, peer.latency, count=options.size(50_000, 2_000), chunk=peer.chunk)


def _drain(workers: int) -> Callable[[Server, QueueProgram, Peer, Options], Result]:
    def run(server: Server, queue: QueueProgram, peer: Peer, options: Options) -> Result:
        jobs = options.size(22_000, 2_200)
        template = queue.template(server, peer.drain, jobs)
        cap = options.size(12.0, 3.0)
        return drain(server, queue, peer.drain, template, jobs=jobs, workers=workers, cap=cap)

    return run


def _backlog(server: Server, queue: QueueProgram, peer: Peer, options: Options) -> Result:
    jobs = options.size(500_000, 15_000)
    template = queue.template(server, peer.drain, jobs)
    cap = options.size(12.0, 3.0)
    return drain(server, queue, peer.drain, template, jobs=jobs, cap=cap, entries_only=True)


def _steady(server: Server, queue: QueueProgram, peer: Peer, options: Options) -> Result:
    result = measure_steady(server, queue, peer.drain, seconds=options.size(10.0, 1.0))
    del result["at"]
    found = summarize(result.pop("ms"))
    return {**result, "p50": found.p50, "p99": found.p99}


_LATENCY = (
    Metric("p50", "p50 ms", "low"),
    Metric("p95", "p95"),
    Metric("p99", "p99", "low"),
    Metric("max", "max"),
)
_DRAIN = (
    Metric("rate", "jobs/s", "high"),
    Metric("worker_us", "worker µs a job"),
    Metric("postgres_us", "Postgres µs a job"),
)


def _blocking_programs(count: tuple[int, int], rate: float) -> tuple[Floor, ...]:
    name = "two blocking psycopg programs"
    return (Floor(name, lambda server, options: floor_latency(server, options.size(*count), rate)),)


_DRAIN_FLOORS = (
    Floor(
        "psycopg: claim 1, complete 1",
        lambda server, options: floor_drain(server, 1, options.size(2_000, 200)),
        batched=False,
    ),
    Floor(
        "psycopg: claim 500, complete 500",
        lambda server, options: floor_drain(server, 500, options.size(20_000, 2_000)),
        batched=True,
    ),
)
_PGBENCH = Floor(
    "pgbench: INSERT and commit", lambda server, options: floor_sends(server, options.size(3.0, 1.0))
)
_COPY = Floor("bare COPY", lambda server, options: floor_bulk(server, options.size(50_000, 2_000)))

ALL: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload(
            "L1",
            _LATENCY,
            _paced((300, 40), 50.0),
            _blocking_programs((300, 40), 50.0),
            "latency",
        ),
        Workload(
            "L2",
            _LATENCY,
            _paced((2000, 100), 200.0),
            _blocking_programs((2000, 100), 200.0),
            "latency",
        ),
        Workload(
            "T1",
            (
                Metric("rate_1", "1 at a time, jobs/s", "high"),
                Metric("rate_10", "10 at a time, jobs/s", "high"),
                Metric("client_us", "client µs a send"),
            ),
            _sends,
            (_PGBENCH,),
        ),
        Workload(
            "T2",
            (Metric("rate", "jobs/s", "high"), Metric("client_us", "client µs a job")),
            _bulk,
            (_COPY,),
        ),
        Workload("T3", _DRAIN, _drain(1), _DRAIN_FLOORS, "drain"),
        Workload("T3x2", _DRAIN, _drain(2), uses="drain"),
        Workload(
            "T4",
            (
                Metric("handled", "handled/s", "high"),
                Metric("sent", "sent/s"),
                Metric("p50", "wait p50 ms", "low"),
                Metric("p99", "wait p99 ms"),
            ),
            _steady,
            uses="drain",
        ),
        Workload(
            "T5",
            (Metric("entry_rate", "entries/s", "high"), *_DRAIN[1:], Metric("of_t3", "x T3's entries/s")),
            _backlog,
            uses="drain",
        ),
        Workload(
            "I1",
            (
                Metric("worker_cpu", "worker CPU s in 20 s", "low"),
                Metric("postgres_cpu", "backends' CPU s"),
                Metric("connections", "connections", "low"),
                Metric("statements", "statements a minute", "low"),
                Metric("wakeups_a_minute", "wake-ups a minute"),
                Metric("resident_mb", "memory MB"),
            ),
            None,
            uses="latency",
        ),
    )
}
