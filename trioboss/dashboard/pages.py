"""The pages of queues, jobs and keys: what each reads, and the template it is shown with."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import attrs
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request

from trioboss.charts import numbers
from trioboss.charts.svg import Axis, Series, bars, curves, sparkline
from trioboss.dashboard import queries
from trioboss.dashboard.database import Actor, Reader
from trioboss.dashboard.filters import STATES, JobFilter
from trioboss.dashboard.formatting import Redactor
from trioboss.dashboard.rendering import decode_queue
from trioboss.dashboard.values import JobPage, Rates
from trioboss.errors import UnknownQueue, UsageError
from trioboss.model.check import check_uuid
from trioboss.model.policy import Policy
from trioboss.model.queue import Queue
from trioboss.model.statistics import QueueSample
from trioboss.postgres.operation import Operation
from trioboss.store import Store

__all__ = [
    "Dashboard",
    "Load",
    "Page",
    "find_queue",
    "job",
    "jobs",
    "key",
    "keys",
    "overview",
    "queue",
    "redact_message",
]

T = TypeVar("T")

_QUEUES = 100  # on a page of the overview
_SPANS = {"1h": (timedelta(hours=1), timedelta(minutes=1)), "24h": (timedelta(days=1), timedelta(minutes=15))}
_SETTINGS = (
    *("retry_limit", "retry_delay", "retry_backoff", "retry_delay_max", "retry_jitter"),
    *("retry_multiplier", "retry_window"),
    *(
        "expire_in",
        "heartbeat",
        "auto_heartbeat",
        "max_lease_extensions",
        "dead_letter",
        "warning_queue_size",
    ),
    *("retention", "delete_after", "keep_completed", "commit_order", "partition", "created_on", "updated_on"),
)


@attrs.frozen
class Page:
    """What a template is rendered with."""

    template: str
    title: str
    values: dict[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class Dashboard:
    """What all pages need."""

    reader: Reader
    actor: Actor
    redact: Redactor

    async def read(self, operation: Callable[[Store], Operation[T]]) -> T:
        """Read from the database."""
        return await self.reader.read(operation)


Load = Callable[[Dashboard, Request], Awaitable[Page]]


# -- the overview


async def overview(dashboard: Dashboard, request: Request) -> Page:
    """All queues."""
    text = request.query_params.get("text", "").strip() or None
    after = request.query_params.get("after") or None

    def read(store: Store) -> Operation[tuple[Any, ...]]:
        now = yield from queries.get_clock(store)
        rows = yield from queries.list_queues(store, text=text, after=after, limit=_QUEUES + 1)
        rates = yield from queries.list_rates(store, [row.name for row in rows], now)
        warnings = yield from store.statistics.get_warnings(None, now - timedelta(minutes=10), 20)
        workers = yield from queries.list_workers(store)
        return rows, rates, warnings, workers

    rows, rates, warnings, workers = await dashboard.read(read)
    shown, more = rows[:_QUEUES], rows[_QUEUES - 1].name if len(rows) > _QUEUES else None
    totals = {
        name: sum(getattr(row, name) for row in shown)
        for name in ("ready", "waiting", "deferred", "active", "blocked")
    }
    hour = {
        name: sum(sum(getattr(each, name)) for each in rates.values())
        for name in ("arrived", "completed", "failed")
    }
    values = {
        "queues": shown,
        "more": more,
        "rates": rates,
        "sparks": {row.name: _spark(row.name, rates.get(row.name)) for row in shown},
        "warnings": warnings,
        "workers": workers,
        "totals": totals,
        "hour": hour,
        "text": text,
        "warned": {warning.queue for warning in warnings},
        "no_rates": Rates(),
    }
    return Page("overview.html", "Queues", values)


def _spark(name: str, rates: Rates | None) -> Markup:
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


# -- one queue


async def find_queue(dashboard: Dashboard, name: str) -> Queue:
    """The queue of that name, as an address has it. Raises HTTPException if there is none."""
    name = decode_queue(name)
    try:
        return await dashboard.read(lambda store: store.context.reload(name))
    except (UnknownQueue, UsageError):
        raise HTTPException(404, f"There is no queue {name!r}.") from None


async def queue(dashboard: Dashboard, request: Request) -> Page:
    """One queue: its history, errors, slow jobs, keys and settings."""
    found = await find_queue(dashboard, request.path_params["queue"])
    name, span = found.name, request.query_params.get("span", "1h")
    if span not in _SPANS:
        raise UsageError(f"span: {span[:20]!r} is not one of {', '.join(_SPANS)}")

    def read(store: Store) -> Operation[tuple[Any, ...]]:
        now = yield from queries.get_clock(store)
        rows = yield from queries.list_queues(store, queue=name)
        length, bucket = _SPANS[span]
        history = yield from store.statistics.get_history(name, now - length + bucket, now, bucket)
        errors = yield from queries.list_errors(store, name)
        slowest = yield from queries.list_slowest(store, name)
        keys = []
        if found.policy.is_keyed:
            keys = yield from queries.list_keys(store, name, limit=12)
        warnings = yield from store.statistics.get_warnings(name, now - timedelta(days=1), 5)
        return rows[0], history, errors, slowest, keys, warnings

    row, history, errors, slowest, keys, warnings = await dashboard.read(read)
    values = {
        "queue": found,
        "row": row,
        "span": span,
        "charts": _charts(history, _SPANS[span][1], found),
        "latest": _sum(history),
        "errors": [
            attrs.evolve(each, message=redact_message(dashboard, name, each.message)) for each in errors
        ],
        "slowest": slowest,
        "keys": keys,
        "warnings": warnings,
        "settings": [(option, getattr(found, option)) for option in _SETTINGS],
    }
    return Page("queue.html", name, values)


def _sum(history: list[QueueSample]) -> dict[str, Any]:
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


def _charts(history: list[QueueSample], bucket: timedelta, queue: Queue) -> dict[str, Markup]:
    history = _without_current(history)
    axis = Axis([each.start for each in history], bucket, 390, 140, left=40)
    flow = [
        Series("out", "good", [each.completed for each in history]),
        Series("failed attempts", "bad", [each.failed for each in history]),
    ]
    arrived = [Series("in", "accent", [each.arrived for each in history])]
    backlog = [
        Series("ready", "accent", [each.ready for each in history]),
        Series("waiting", "warm", [each.waiting for each in history]),
        Series("active", "good", [each.active for each in history]),
    ]
    times = [
        Series("waited, 95 %", "accent", [each.wait_p95 for each in history]),
        Series("waited, half", "calm", [each.wait_p50 for each in history]),
        Series("ran, 95 %", "good", [each.run_p95 for each in history]),
    ]
    return {
        "flow": Markup(bars(axis, flow, arrived, numbers.short_count, f"{queue.name}: jobs in and out")),
        "backlog": Markup(
            curves(axis, backlog, numbers.short_count, f"{queue.name}: jobs that wait and run")
        ),
        "times": Markup(curves(axis, times, numbers.duration, f"{queue.name}: how long jobs wait and run")),
    }


# -- jobs


async def jobs(dashboard: Dashboard, request: Request) -> Page:
    """A list of jobs."""
    found = await find_queue(dashboard, request.path_params["queue"])
    filter = JobFilter.parse(request.query_params, datetime.now(UTC))
    page = await dashboard.read(lambda store: queries.list_jobs(store, found.name, filter))
    values = {
        "queue": found,
        "filter": filter,
        "page": _redact_page(dashboard, found.name, page),
        "states": STATES,
        "budget": queries.BUDGET,
        "query": filter.query(),
        "next_query": None if page.next is None else filter.query(before=page.next),
        "first_query": filter.query(before=None),
        "given": dict(request.query_params),
    }
    return Page("jobs.html", f"Jobs of {found.name}", values)


def redact_message(dashboard: Dashboard, queue: str, message: str | None) -> str | None:
    """The message of an error, if it may be shown."""
    if message is None:
        return None
    shown = dashboard.redact(queue, {"message": message})
    return str(shown.get("message", "")) if isinstance(shown, dict) else ""


def _redact_page(dashboard: Dashboard, queue: str, page: JobPage) -> JobPage:
    rows = [attrs.evolve(job, message=redact_message(dashboard, queue, job.message)) for job in page.jobs]
    return attrs.evolve(page, jobs=rows)


async def job(dashboard: Dashboard, request: Request) -> Page:
    """One job."""
    found = await find_queue(dashboard, request.path_params["queue"])
    try:
        id = check_uuid("id", request.path_params["id"])
    except UsageError:
        raise HTTPException(404, "That is not the id of a job.") from None

    def read(store: Store) -> Operation[Any]:
        job = yield from store.reading.get_job(found.name, id)
        if job is None:
            return None
        attempts = yield from queries.list_attempts(store, job)
        explanation = yield from store.reading.why(found.name, id)
        dead_letter = yield from queries.find_dead_letter(store, job)
        return job, attempts, explanation, dead_letter

    answer = await dashboard.read(read)
    if answer is None:
        raise HTTPException(404, f"There is no job {id} in queue {found.name!r}: it may have been deleted.")
    job, attempts, explanation, dead_letter = answer
    redact = dashboard.redact
    values = {
        "queue": found,
        "job": job,
        "why": explanation,
        "attempts": [attrs.evolve(each, error=redact(found.name, each.error)) for each in attempts],
        "dead_letter": dead_letter,
        "data": redact(found.name, job.data),
        "output": redact(found.name, job.output),
        "progress": redact(found.name, job.progress),
        "waited": _waited(job),
    }
    return Page("job.html", f"Job {str(id)[:13]}", values)


def _waited(job: Any) -> float | None:
    if job.started_on is None:
        return None
    seconds: float = (job.started_on - max(job.start_after, job.created_on)).total_seconds()
    return max(seconds, 0.0)


# -- keys


async def keys(dashboard: Dashboard, request: Request) -> Page:
    """The keys of a queue whose jobs run one at a time for each key."""
    found = await find_queue(dashboard, request.path_params["queue"])
    if not found.policy.is_keyed:
        raise HTTPException(
            404, f"Jobs of {found.name!r} do not wait for each other: its policy is {found.policy}."
        )
    after = request.query_params.get("after") or None
    rows = await dashboard.read(lambda store: queries.list_keys(store, found.name, after, 51))
    more = rows[49].backlog if len(rows) > 50 else None
    return Page(
        "keys.html",
        f"Keys of {found.name}",
        {"queue": found, "keys": rows[:50], "more": more, "after": after},
    )


async def key(dashboard: Dashboard, request: Request) -> Page:
    """The backlog of one key."""
    found = await find_queue(dashboard, request.path_params["queue"])
    name = request.query_params.get("key", "")
    rows = await dashboard.read(lambda store: queries.list_backlog(store, found.name, name))
    rows = [attrs.evolve(each, message=redact_message(dashboard, found.name, each.message)) for each in rows]
    owner = next((each for each in rows if each.is_owner), None)
    values = {
        "queue": found,
        "key": name,
        "owner": owner,
        "waiting": [each for each in rows if not each.is_owner],
        "is_strict": found.policy is Policy.KEY_STRICT_FIFO,
    }
    return Page("key.html", f"Key {name[:40]}", values)
