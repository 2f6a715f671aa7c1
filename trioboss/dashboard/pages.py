"""The pages of queues, jobs and keys: what each reads, and the template it is shown with."""

import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import attrs
from starlette.exceptions import HTTPException
from starlette.requests import Request

from trioboss.dashboard import queries
from trioboss.dashboard.database import Actor, Reader
from trioboss.dashboard.filters import STATES, JobFilter, list_actions
from trioboss.dashboard.formatting import cut, more_than
from trioboss.dashboard.history import draw_history, draw_spark, sum_history
from trioboss.dashboard.payloads import Redactor, Show, make_show, read_payload, redact_message
from trioboss.dashboard.rendering import decode_queue, queue_address
from trioboss.dashboard.values import (
    OVERVIEW_LIMIT,
    Attempt,
    BacklogJob,
    JobPage,
    JobRow,
    KeyPage,
    QueueRow,
    Rates,
)
from trioboss.errors import UnknownQueue, UsageError
from trioboss.model.check import check_uuid
from trioboss.model.explanation import Explanation
from trioboss.model.policy import Policy
from trioboss.model.queue import Queue
from trioboss.postgres.operation import Operation
from trioboss.store import Store

__all__ = [
    "Dashboard",
    "LoadPage",
    "Page",
    "find_queue",
    "get_queue",
    "job",
    "jobs",
    "key",
    "keys",
    "overview",
    "queue",
]

T = TypeVar("T")

_QUEUES = 100  # on a page of the overview
_KEYS = 50  # on a page of keys
_STACKS = 100_000  # characters of all stacks of a job
_MESSAGE = 2_000  # characters of a message
_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
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
    """The values that a template is rendered with."""

    template: str
    title: str
    values: dict[str, Any] = attrs.field(factory=dict)
    status: int = 200


@attrs.frozen
class Dashboard:
    """The values that all pages need."""

    reader: Reader
    actor: Actor
    redact: Redactor
    show: Show = attrs.field(init=False)

    @show.default
    def _make_show(self) -> Show:
        return make_show(self.redact)

    async def read(self, operation: Callable[[Store], Operation[T]]) -> T:
        """Read from the database."""
        return await self.reader.read(operation)


LoadPage = Callable[[Dashboard, Request], Awaitable[Page]]


# -- the overview


async def overview(dashboard: Dashboard, request: Request) -> Page:
    """All queues."""
    text = request.query_params.get("text", "").strip() or None
    after = request.query_params.get("after") or None
    if text is not None and _ID.fullmatch(text):
        await _go_to_job(dashboard, request, UUID(text))

    rows, rates, warnings, workers = await dashboard.read(partial(_read_overview, text=text, after=after))
    shown, more = rows[:_QUEUES], rows[_QUEUES - 1].name if len(rows) > _QUEUES else None
    totals = {name: _add_counts(shown, name) for name in ("ready", "waiting", "deferred", "active")}
    hour = {
        name: sum(sum(getattr(each, name)) for each in rates.values())
        for name in ("arrived", "completed", "failed")
    }
    values = {
        "queues": shown,
        "more": more,
        "rates": rates,
        "sparks": {row.name: draw_spark(row.name, rates.get(row.name)) for row in shown},
        "warnings": warnings,
        "workers": workers[0],
        "connected": workers[1],
        "totals": totals,
        "hour": hour,
        "text": text,
        "is_part": more is not None or text is not None or after is not None,
        "is_first": after is None,
        "warned": {warning.queue for warning in warnings},
        "no_rates": Rates(),
    }
    return Page("overview.html", "Queues", values)


def _read_overview(store: Store, *, text: str | None, after: str | None) -> Operation[tuple[Any, ...]]:
    now = yield from queries.get_clock(store)
    # One queue more than a page shows: it tells whether there is a next page.
    rows = yield from queries.list_queues(
        store, text=text, after=after, limit=_QUEUES + 1, most=OVERVIEW_LIMIT
    )
    rows = yield from queries.count_on(store, rows)
    rates = yield from queries.list_rates(store, [row.name for row in rows], now)
    warnings = yield from store.statistics.get_warnings(None, now - timedelta(minutes=10), 20)
    workers = yield from queries.count_workers(store)
    return rows, rates, warnings, workers


def _add_counts(rows: list[QueueRow], name: str) -> str:
    """The sum of the counts of a kind, each of which may have stopped."""
    total = sum(getattr(row, name) for row in rows)
    return more_than(total) if any(name in row.stopped for row in rows) else f"{total:,}"


async def _go_to_job(dashboard: Dashboard, request: Request, id: UUID) -> None:
    """Lead to the page of the job of this id, whatever its queue, if there is one."""
    queue = await dashboard.read(lambda store: queries.find_queue_of_job(store, id))
    if queue is not None:
        address = queue_address(request.scope["trioboss_base"], queue, "jobs", id)
        raise HTTPException(303, f"Job {id} is in queue {queue!r}.", {"Location": address})


# -- one queue


async def find_queue(dashboard: Dashboard, part: str) -> Queue:
    """The queue of a part of an address. Raises HTTPException if there is none."""
    return await get_queue(dashboard, decode_queue(part))


async def get_queue(dashboard: Dashboard, name: str) -> Queue:
    """The queue of that name. Raises HTTPException if there is none."""
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
        keys = KeyPage([])
        if found.policy.is_keyed:
            keys = yield from queries.list_keys(store, name, limit=12)
        warnings = yield from store.statistics.get_warnings(name, now - timedelta(days=1), 5)
        has_dead_letters = rows[0].is_dead_letter or (yield from queries.has_dead_letters(store, name))
        _, connected = yield from queries.count_workers(store, name)
        return rows[0], history, errors, slowest, keys, warnings, has_dead_letters, connected

    row, history, errors, slowest, keys, warnings, has_dead_letters, connected = await dashboard.read(read)
    values = {
        "queue": found,
        "row": row,
        "connected": connected,
        "span": span,
        "charts": draw_history(history, _SPANS[span][1], found),
        "latest": sum_history(history),
        "errors": [
            attrs.evolve(each, message=redact_message(dashboard.redact, name, each.message))
            for each in errors
        ],
        "slowest": slowest,
        "keys": keys.keys,
        "has_dead_letters": has_dead_letters,
        "warnings": warnings,
        "settings": [(option, getattr(found, option)) for option in _SETTINGS],
    }
    return Page("queue.html", name, values)


# -- jobs


async def jobs(dashboard: Dashboard, request: Request) -> Page:
    """A list of jobs."""
    found = await find_queue(dashboard, request.path_params["queue"])
    problem = None

    def read(store: Store) -> Operation[tuple[JobFilter, JobPage, bool]]:
        now = yield from queries.get_clock(store)
        filter = JobFilter.parse(request.query_params, now)
        page = yield from queries.list_jobs(store, found.name, filter)
        page = yield from queries.add_excerpts(store, found.name, page)
        return filter, page, (yield from queries.has_dead_letters(store, found.name))

    try:
        filter, page, has_dead_letters = await dashboard.read(read)
    except UsageError as error:  # the form is shown again, with what was typed
        filter, page, has_dead_letters, problem = JobFilter(), JobPage([]), False, str(error)
    query = filter.query()
    values = {
        "queue": found,
        "filter": filter,
        "problem": problem,
        "page": _redact_page(dashboard, found.name, page),
        "states": STATES,
        "actions": list_actions(filter.state, has_dead_letters=has_dead_letters),
        "query": query,
        "here": queue_address("", found.name, "jobs") + (query and f"?{query}"),
        "next_query": None if page.next is None else filter.query(before=page.next),
        "first_query": filter.query(before=None),
        "given": dict(request.query_params),
    }
    return Page("jobs.html", f"Jobs of {found.name}", values, 400 if problem else 200)


def _redact_page(dashboard: Dashboard, queue: str, page: JobPage) -> JobPage:
    def redact(job: JobRow) -> JobRow:
        data = read_payload(job.data)
        message = redact_message(dashboard.redact, queue, job.message)
        return attrs.evolve(
            job, message=message, data=None if data is None else dashboard.redact(queue, data.value)
        )

    return attrs.evolve(page, jobs=[redact(job) for job in page.jobs])


async def job(dashboard: Dashboard, request: Request) -> Page:
    """One job."""
    found = await find_queue(dashboard, request.path_params["queue"])
    try:
        id = check_uuid("id", request.path_params["id"])
    except UsageError:
        raise HTTPException(404, "That is not the id of a job.") from None

    def read(store: Store) -> Operation[Any]:
        job = yield from queries.get_job(store, found.name, id)
        if job is None:
            return None
        attempts = yield from queries.list_attempts(store, job)
        explanation = yield from store.reading.why(found.name, id)
        dead_letter = yield from queries.find_dead_letter(store, job)
        return job, attempts, explanation, dead_letter, (yield from queries.get_payload(store, job))

    answer = await dashboard.read(read)
    if answer is None:
        raise HTTPException(404, f"There is no job {id} in queue {found.name!r}: it may have been deleted.")
    job, attempts, explanation, dead_letter, payload = answer
    data, output, progress = (dashboard.show(found.name, text, size) for text, size in payload)
    attempts = [attrs.evolve(each, error=dashboard.redact(found.name, each.error)) for each in attempts]
    values = {
        "queue": found,
        "job": job,
        "why": explanation,
        "attempts": _cut_errors(attempts),
        "dead_letter": dead_letter,
        "data": data,
        "output": output,
        "progress": progress,
    }
    return Page("job.html", f"Job {str(id)[:13]}", values)


def _cut_errors(attempts: list[Attempt]) -> list[Attempt]:
    """The attempts, with messages cut off and stacks as far as they fit on the page, the newest first."""
    left, shown = _STACKS, []
    for attempt in reversed(attempts):
        error = attempt.error
        if isinstance(error, dict):
            stack = cut(error.get("stack") or "", left)
            left = max(left - len(stack), 0)
            message = cut(error["message"], _MESSAGE) if "message" in error else ""
            error = {"name": cut(error.get("name") or "Error", 200), "message": message, "stack": stack}
        shown.append(attrs.evolve(attempt, error=error))
    return shown[::-1]


# -- keys


async def keys(dashboard: Dashboard, request: Request) -> Page:
    """The keys of a queue whose jobs run one at a time for each key."""
    found = await find_queue(dashboard, request.path_params["queue"])
    if not found.policy.is_keyed:
        raise HTTPException(
            404, f"Jobs of {found.name!r} do not wait for each other: its policy is {found.policy}."
        )
    after, after_blocked = (request.query_params.get(name) or None for name in ("after", "after_blocked"))
    page = await dashboard.read(
        lambda store: queries.list_keys(store, found.name, after, after_blocked, _KEYS)
    )
    values = {"queue": found, "page": page, "is_first": after is None and after_blocked is None}
    return Page("keys.html", f"Keys of {found.name}", values)


async def key(dashboard: Dashboard, request: Request) -> Page:
    """The backlog of one key."""
    found = await find_queue(dashboard, request.path_params["queue"])
    name = request.query_params.get("key", "")

    def read(store: Store) -> Operation[tuple[list[BacklogJob], Explanation | None, int]]:
        rows = yield from queries.list_backlog(store, found.name, name)
        # The owner, or the first job of a key that is free: what it waits for, all jobs of the key wait for.
        why = (yield from store.reading.why(found.name, rows[0].id)) if rows else None
        return rows, why, (yield from queries.count_backlog(store, found.name, name))

    rows, why, size = await dashboard.read(read)
    rows = [
        attrs.evolve(each, message=redact_message(dashboard.redact, found.name, each.message))
        for each in rows
    ]
    owner = next((each for each in rows if each.is_owner), None)
    values = {
        "queue": found,
        "key": name,
        "owner": owner,
        "first": rows[0] if rows else None,
        "why": why,
        "waiting": [each for each in rows if not each.is_owner],
        "size": size,
        "is_strict": found.policy is Policy.KEY_STRICT_FIFO,
    }
    return Page("key.html", f"Key {name[:40]}", values)
