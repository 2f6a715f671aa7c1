"""The history of a queue as charts: the sparkline of the overview, and the charts of its page."""

from datetime import timedelta
from typing import Any

import attrs
from markupsafe import Markup

from trioboss.charts import numbers
from trioboss.charts.svg import Axis, Series, bars, curves, sparkline
from trioboss.dashboard.values import Rates
from trioboss.model.queue import Queue
from trioboss.model.statistics import QueueSample

__all__ = ["draw_history", "draw_spark", "sum_history"]


def draw_spark(name: str, rates: Rates | None) -> Markup:
    """The last hour of a queue, for a line of a table."""
    if rates is None:
        return Markup("")
    # The minute that is not over would seem to fall. It is shown only if there is nothing else.
    end = -1 if any(rates.arrived[:-1]) or any(rates.completed[:-1]) else None
    series = [
        Series("completed", "good", rates.completed[:end]),
        Series("arrived", "accent", rates.arrived[:end]),
        Series("failed", "bad", rates.failed[:end]),
    ]
    arrived, completed, failed = sum(rates.arrived), sum(rates.completed), sum(rates.failed)
    label = f"{name}, last hour: {arrived} in, {completed} out, {failed} failed attempts"
    return Markup(
        sparkline([each for each in series if any(v or 0 for v in each.values)] or series[:1], label)
    )


def sum_history(history: list[QueueSample]) -> dict[str, Any]:
    """The counts and percentiles of the whole time."""
    waits = [sum(column) for column in zip(*(each.waits for each in history), strict=True)]
    runs = [sum(column) for column in zip(*(each.runs for each in history), strict=True)]
    whole = attrs.evolve(history[-1], waits=tuple(waits), runs=tuple(runs))
    return {
        "arrived": sum(each.arrived for each in history),
        "completed": sum(each.completed for each in history),
        "failed": sum(each.failed for each in history),
        "wait_p50": whole.wait_p50,
        "wait_p95": whole.wait_p95,
        "run_p95": whole.run_p95,
    }


def _without_current(history: list[QueueSample]) -> list[QueueSample]:
    """All periods but the one that is not over, whose counts would seem to fall; with it, if there is nothing else."""
    past = history[:-1]
    return past if any(each.arrived or each.completed for each in past) else history


def draw_history(history: list[QueueSample], bucket: timedelta, queue: Queue) -> dict[str, Markup]:
    """The charts of the page of a queue, by name."""
    history = _without_current(history)
    axis = Axis([each.start for each in history], bucket, 390, 140, left=40)
    flow = [
        Series("out", "good", [each.completed for each in history]),
        Series("failed attempts", "bad", [each.failed for each in history]),
    ]
    arrived = [Series("in", "accent", [each.arrived for each in history])]
    live = [
        Series("ready", "accent", [each.ready for each in history]),
        Series("waiting", "warm", [each.waiting for each in history]),
        Series("active", "good", [each.active for each in history]),
    ]
    times = [
        Series("p95 wait", "accent", [each.wait_p95 for each in history]),
        Series("median wait", "calm", [each.wait_p50 for each in history]),
        Series("p95 run", "good", [each.run_p95 for each in history]),
    ]
    return {
        "flow": Markup(bars(axis, flow, arrived, numbers.short_count, f"{queue.name}: jobs in and out")),
        "live": Markup(curves(axis, live, numbers.short_count, f"{queue.name}: jobs that wait and run")),
        "times": Markup(curves(axis, times, numbers.duration, f"{queue.name}: how long jobs wait and run")),
    }
