"""Measurements that several benchmarks share: latency at a steady rate, sends, bulk, steady state.

Each starts its programs on a fresh database and returns a dict of figures, with `noise` among them. The measurement
of a drain is in `draining`.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import attrs

from benchmarks.harness.meters import Meter
from benchmarks.harness.percentiles import latencies, summarize
from benchmarks.harness.processes import ProgramFailed
from benchmarks.harness.queue_programs import QueueProgram, wait_drained
from benchmarks.harness.server import Server, run_sql

__all__ = ["measure_bulk", "measure_latency", "measure_sends", "measure_steady"]

_SETTLE = 0.5  # seconds between start-up and measurement

Result = dict[str, Any]
Settings = Mapping[str, Any]


def measure_latency(
    server: Server,
    queue: QueueProgram,
    settings: Settings,
    *,
    count: int,
    rate: float,
    warmup: int = 50,
    beside: Callable[[str], AbstractContextManager[object]] = nullcontext,
    then: Callable[[str], object] | None = None,
    keep_due: bool = False,
) -> Result:
    """Send at a steady rate from one process, record the handler entries in another.

    `beside` is a block that runs on the same database, `then` a function that is called at the end. `keep_due`: the
    result also has the due time of each job.
    """
    template = queue.template(server, settings)
    with (
        server.database(template.name) as dsn,
        queue.run("work", dsn, settings) as worker,
        queue.run(
            "produce", dsn, settings, senders=10, mode="rate", n=count, rate=rate, warmup=warmup
        ) as producer,
        beside(dsn),
    ):
        worker.wait("ready")
        producer.wait("ready")
        time.sleep(_SETTLE)
        with Meter(server.postmaster, lambda: worker.cpu() + producer.cpu()) as meter:
            cpu = worker.cpu()
            sent = producer.request({"do": "go"}, "produced", timeout=count / rate + 60)
            wait_drained(dsn, template, 20.0, pause=0.05)
            cpu = worker.cpu() - cpu
        recorded = worker.request({"do": "report"}, "recorded")
        if then is not None:
            then(dsn)
    result = _latency_result(recorded, sent, meter, cpu, count)
    return {**result, "due": [due for *_, due in _sent(recorded)]} if keep_due else result


def _sent(recorded: Result) -> list[tuple[float, float, float]]:
    """When each job of the measurement entered its handler, was sent, and was due."""
    rows = zip(recorded["entered"], recorded["called"], recorded["due"], strict=True)
    return [row for row in rows if row[1]]


def _latency_result(recorded: Result, sent: Result, meter: Meter, cpu: float, count: int) -> Result:
    entered, called, due = zip(*_sent(recorded), strict=True)
    if len(entered) != count:
        raise ProgramFailed(f"{len(entered)} of {count} jobs were handled")
    seconds = latencies(entered, called, due)
    strict = latencies(entered, called, due, slack=0.0)
    return {
        "ms": [value * 1000 for value in seconds],
        "handled": len(entered) / (max(entered) - min(due)),
        "from_due_ms": attrs.asdict(summarize(value * 1000 for value in strict)),
        "late_ms": sent["late"] * 1000,
        "worker_cpu": cpu,
        "producer_cpu": sent["cpu"],
        "postgres_cpu": meter.postgres,
        "noise": meter.noise,
    }


def measure_sends(
    server: Server, queue: QueueProgram, settings: Settings, *, senders: int, seconds: float
) -> Result:
    """Single sends at full speed."""
    template = queue.template(server, settings)
    warmup = max(20, round(seconds * 100))
    with (
        server.database(template.name) as dsn,
        queue.run(
            "produce", dsn, settings, senders=senders, mode="speed", seconds=seconds, warmup=warmup
        ) as producer,
    ):
        producer.wait("ready")
        with Meter(server.postmaster, producer.cpu) as meter:
            sent = producer.request({"do": "go"}, "produced", timeout=seconds + 60)
    return _sending_result(sent, meter)


def measure_bulk(
    server: Server, queue: QueueProgram, settings: Settings, *, count: int, chunk: int = 0
) -> Result:
    """Send many jobs by the queue's bulk interface."""
    template = queue.template(server, settings)
    with (
        server.database(template.name) as dsn,
        queue.run("produce", dsn, settings, senders=1, mode="bulk", n=count, chunk=chunk) as producer,
    ):
        producer.wait("ready")
        with Meter(server.postmaster, producer.cpu) as meter:
            sent = producer.request({"do": "go"}, "produced", timeout=600)
        found = run_sql(dsn, template.facts["pending_sql"])[0][0]
        if found != count + min(1000, count):
            raise ProgramFailed(f"{found} jobs after sending {count}")
    return _sending_result(sent, meter)


def _sending_result(sent: Result, meter: Meter) -> Result:
    return {
        "rate": sent["n"] / (sent["end"] - sent["begin"]),
        "client_us": sent["cpu"] / max(sent["n"], 1) * 1e6,
        "postgres_us": meter.postgres / max(sent["n"], 1) * 1e6,
        "noise": meter.noise,
    }


def measure_steady(
    server: Server,
    queue: QueueProgram,
    settings: Settings,
    *,
    senders: int = 10,
    seconds: float,
) -> Result:
    """Run a producer and a worker at full speed."""
    template = queue.template(server, settings)
    sending = {"senders": senders, "mode": "speed", "seconds": seconds, "warmup": 200}
    with (
        server.database(template.name) as dsn,
        queue.run("work", dsn, settings) as worker,
        queue.run("produce", dsn, settings, **sending) as producer,
    ):
        worker.wait("ready")
        producer.wait("ready")
        time.sleep(_SETTLE)
        with Meter(server.postmaster, lambda: worker.cpu() + producer.cpu()) as meter:
            sent = producer.request({"do": "go"}, "produced", timeout=seconds + 60)
        recorded = worker.request({"do": "report"}, "recorded")
    rows = zip(recorded["entered"], recorded["called"], strict=True)
    handled = [(entered, called) for entered, called in rows if called and entered <= sent["end"]]
    if not handled:
        raise ProgramFailed("no job was handled")
    window = sent["end"] - sent["begin"]
    return {
        "handled": len(handled) / window,
        "sent": sent["n"] / window,
        "ms": [(entered - called) * 1000 for entered, called in handled],
        "at": [entered - sent["begin"] for entered, _ in handled],
        "noise": meter.noise,
    }
