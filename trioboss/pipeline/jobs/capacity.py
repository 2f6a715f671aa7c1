"""How many slots each queue needs for a wait that people accept, and how far that can be believed.

For each hour of the week, its busiest: the slots with which the wait stays below the target, by a queueing model. The
model is checked in two ways against what happened. It is asked for the waits with the slots that there were, and its
answers are compared with the waits that were measured. And the work of the busiest hour is replayed, attempt by
attempt, with the slots that it asks for: where that misses the target, slots are added until it does not.

Waits behind another job of the same key cannot be bought with slots; queues where these decide are marked.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from datetime import UTC
from math import isfinite
from typing import Any

import attrs
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from trioboss.errors import UsageError
from trioboss.pipeline.arguments import check_positive, open_run
from trioboss.pipeline.describing import describe_queries
from trioboss.pipeline.history import Source, add_history_arguments, check_source, source_of
from trioboss.pipeline.progress import Reporter, report_end, report_stages
from trioboss.pipeline.queueing import Demand, Work, percentile, replay, slots_needed, wait_percentile
from trioboss.pipeline.session import get_session
from trioboss.pipeline.terminal import print_json, print_rows
from trioboss.pipeline.transforms.attempts import all_attempts
from trioboss.pipeline.transforms.demand import busiest_hours, demand_by_hour, work_of
from trioboss.pipeline.transforms.hours import concurrency_by_hour
from trioboss.pipeline.transforms.times import hour_of
from trioboss.pipeline.transforms.trace import SERIAL

__all__ = ["Capacity", "Fit", "capacity", "main", "print_capacity"]

_JOBS = (
    "id", "queue", "state", "policy", "singleton_key", "created_on", "start_after", "started_on", "completed_on",
    "attempt",
)  # fmt: skip
_ATTEMPTS = ("job_id", "queue", "attempt", "singleton_key", "started_on", "ended_on", "outcome")

SHARE = 0.95
_FEW = 30
"""Percentiles of an hour with fewer arrivals are not used."""
_FLOOR = 0.05
"""Seconds below which all waits are alike: the time that a notification and a claim take."""
_REPLAYED = 20_000


@attrs.frozen
class Fit:
    """How well the waits of the model agree with those that were measured."""

    hours: int
    within_two: float | None
    """The share of hours in which it is right within a factor of two."""
    bias: float | None
    """The median of predicted / measured: above 1 the model predicts longer waits than there were."""


@attrs.frozen
class Capacity:
    """The slots that a queue needs."""

    queue: str
    slots_seen: int
    """The most that it used at once, or as many as the caller gave."""
    peak_rate: float
    """Arrivals a second in the busiest hour."""
    peak_load: float
    wait_p95: float | None
    """The longest of its hours' 95th percentiles."""
    slots_needed: int
    replayed_wait_p95: float
    """In the busiest hour, with that many slots."""
    limited_by: str | None
    """'keys': more slots would not help."""
    fit: Fit
    by_hour: dict[int, int]
    """The slots that each hour of the day needs, in UTC."""


def capacity(
    source: Source,
    *,
    target: float = 1.0,
    slots: Mapping[str, int] | None = None,
    spark: SparkSession | None = None,
    progress: Reporter | None = None,
) -> list[Capacity]:
    """For each queue, the slots that keep the 95th percentile of waits below ``target`` seconds."""
    if not target > 0:
        raise UsageError("target: a wait below nothing cannot be had")
    spark, began = spark or get_session(), time.monotonic()
    with (
        describe_queries(spark, "capacity"),
        source.open(spark, _JOBS, _ATTEMPTS) as history,
        report_stages(spark, "capacity", progress),
    ):
        work = work_of(history.jobs, history.attempts.where(F.col("outcome") != "cancelled"))
        demand = busiest_hours(demand_by_hour(work)).persist()
        hours = demand.collect()
        every = all_attempts(history.jobs, history.attempts)
        peaks = concurrency_by_hour(every).groupBy("queue").agg(F.max("concurrency").alias("seen")).collect()
        busiest = {
            queue: _replayed(rows) for queue, rows in _by_queue(_busiest(work, demand).collect()).items()
        }
        demand.unpersist()
    report_end(progress, "capacity", sum(hour["arrivals"] for hour in hours), time.monotonic() - began)
    seen = {row["queue"]: row["seen"] for row in peaks} | dict(slots or {})
    return [
        _judge(queue, rows, max(1, seen.get(queue) or 1), busiest.get(queue, []), target)
        for queue, rows in sorted(_by_queue(hours).items())
    ]


def _busiest(work: DataFrame, demand: DataFrame) -> DataFrame:
    """The work of the busiest hour of each queue; of very much work, the first."""
    load = F.struct(F.col("arrivals") * F.col("run"), "hour")
    peak = demand.groupBy("queue").agg(F.max_by("hour", load).alias("hour"), F.max("policy").alias("rule"))
    of_peak = work.withColumn("hour", hour_of("due")).join(F.broadcast(peak), ["queue", "hour"])
    nth = F.row_number().over(Window.partitionBy("queue").orderBy("due"))
    key = F.when(F.col("rule").isin(*SERIAL), F.coalesce("singleton_key", F.lit("")))
    chosen = of_peak.withColumn("nth", nth).where(F.col("nth") <= _REPLAYED)
    return chosen.select("queue", (F.unix_micros("due") / 1e6).alias("due"), "run", key.alias("key"))


def _by_queue(rows: Sequence[Any]) -> dict[str, list[Any]]:
    queues: dict[str, list[Any]] = {}
    for row in rows:
        queues.setdefault(row["queue"], []).append(row)
    return queues


def _replayed(rows: Sequence[Any]) -> list[Work]:
    return [Work(row["due"], row["run"], row["key"]) for row in rows]


def _judge(queue: str, hours: Sequence[Any], seen: int, work: Sequence[Work], target: float) -> Capacity:
    demands = [(hour, _demand(hour)) for hour in hours]
    peak = max((demand for _, demand in demands), key=lambda demand: demand.load)
    needed = max(slots_needed(demand, target, SHARE) for _, demand in demands)
    needed, waited, limited = _confirm(work, needed, target)
    by_hour: dict[int, int] = {}
    for hour, demand in demands:
        of_day = hour["hour"].astimezone(UTC).hour
        by_hour[of_day] = max(by_hour.get(of_day, 1), slots_needed(demand, target, SHARE))
    return Capacity(
        queue=queue,
        slots_seen=seen,
        peak_rate=peak.rate,
        peak_load=peak.load,
        wait_p95=max((hour["wait_p95"] for hour in hours if hour["wait_p95"] is not None), default=None),
        slots_needed=needed,
        replayed_wait_p95=waited,
        limited_by=limited,
        fit=_fit(demands, seen),
        by_hour=dict(sorted(by_hour.items())),
    )


def _demand(hour: Any) -> Demand:
    return Demand(
        hour["arrivals"] / 3600,
        hour["run"],
        hour["run_variation"] or 0.0,
        max(hour["arrival_variation"] or 0.0, 0.0),
    )


def _confirm(work: Sequence[Work], slots: int, target: float) -> tuple[int, float, str | None]:
    """Replay with more and more slots until the target is met, or until it is clear that keys prevent it."""
    waited = percentile(replay(work, slots), SHARE)
    best = percentile(replay(work, max(len(work), slots, 1)), SHARE)
    if best > target:
        return slots, waited, "keys"
    while waited > target:
        slots += max(1, slots // 10)
        waited = percentile(replay(work, slots), SHARE)
    return slots, waited, None


def _fit(demands: Sequence[tuple[Any, Demand]], slots: int) -> Fit:
    """Compare the model with the waits that are known. Hours with more work than the slots could do are left out."""
    ratios = []
    for hour, demand in demands:
        predicted = wait_percentile(demand, slots, SHARE)
        if hour["arrivals"] >= _FEW and hour["wait_p95"] is not None and isfinite(predicted):
            ratios.append(max(predicted, _FLOOR) / max(hour["wait_p95"], _FLOOR))
    if not ratios:
        return Fit(0, None, None)
    right = sum(0.5 <= ratio <= 2 for ratio in ratios) / len(ratios)
    return Fit(len(ratios), right, percentile(ratios, 0.5))


_COLUMNS = (
    "queue", "peak_rate", "peak_load", "wait_p95", "slots_seen", "slots_needed", "replayed_wait", "limited_by",
    "hours_checked", "within_2x", "bias",
)  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """The command, for spark-submit and for `trioboss pipeline capacity`."""
    parser = argparse.ArgumentParser(
        prog="trioboss pipeline capacity", description="Compute how many slots each queue needs."
    )
    parser.add_argument(
        "--target", type=float, default=1.0, help="seconds that p95 of waits may be (default 1)"
    )
    parser.add_argument(
        "--slots",
        action="append",
        default=[],
        metavar="QUEUE=N",
        help="how many slots a queue had; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_history_arguments(parser)
    given = parser.parse_args(argv)
    check_positive(given, "target")
    slots = _parse_slots(given.slots)
    with open_run(given, needs_database=check_source(given)) as run:
        source = source_of(given, run.dsn)
        found = capacity(source, target=given.target, slots=slots, spark=run.spark, progress=run.progress)
    if given.json:
        print_json([attrs.asdict(queue) for queue in found])
    else:
        print_capacity(found)
    return 0


def print_capacity(found: Sequence[Capacity]) -> None:
    """Print one line for each queue."""
    print_rows([_flat(queue) for queue in found], _COLUMNS)


def _flat(queue: Capacity) -> dict[str, Any]:
    fit = {"hours_checked": queue.fit.hours, "within_2x": queue.fit.within_two, "bias": queue.fit.bias}
    return attrs.asdict(queue) | fit | {"replayed_wait": queue.replayed_wait_p95}


def _parse_slots(given: Sequence[str]) -> dict[str, int]:
    slots = {}
    for entry in given:
        queue, _, number = entry.rpartition("=")
        if not queue or not number.isdigit() or int(number) < 1:
            raise UsageError(f"slots: {entry!r} is not of the form QUEUE=N")
        slots[queue] = int(number)
    return slots


if __name__ == "__main__":
    raise SystemExit(main())
