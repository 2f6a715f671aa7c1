"""The pages of everything that is no queue: schedules, workers, events, the audit of actions, the pipeline."""

from datetime import timedelta
from itertools import groupby
from typing import Any

import attrs
from starlette.exceptions import HTTPException
from starlette.requests import Request

from trioboss.dashboard import ledger, queries
from trioboss.dashboard.filters import LAST_ID
from trioboss.dashboard.pages import Dashboard, Page, find_queue
from trioboss.dashboard.payloads import redact_message
from trioboss.dashboard.rendering import make_address, queue_address
from trioboss.dashboard.values import SchedulePage, ScheduleRow
from trioboss.errors import UsageError
from trioboss.model.check import check_instant, check_uuid
from trioboss.postgres.operation import Operation
from trioboss.store import Store

__all__ = ["audit", "events", "pipeline", "schedule", "schedules", "workers"]

_EVENT_KINDS = {
    "attempt": "Attempts",
    "job": "Ended jobs",
    "tick": "Ticks",
    "worker": "Workers",
    "action": "Actions",
}


async def schedules(dashboard: Dashboard, request: Request) -> Page:
    """All schedules."""
    given = request.query_params
    text = given.get("text", "").strip() or None
    after = (given["after"], given.get("after_key", "")) if given.get("after") else None

    def read(store: Store) -> Operation[SchedulePage]:
        now = yield from queries.get_clock(store)
        return (yield from ledger.list_schedules(store, now, text=text, after=after))

    here = make_address("", "schedules", **{name: given.get(name) for name in ("text", "after", "after_key")})
    values = {"page": await dashboard.read(read), "text": text, "is_first": after is None, "here": here}
    return Page("schedules.html", "Schedules", values)


async def schedule(dashboard: Dashboard, request: Request) -> Page:
    """One schedule, with its ledger."""
    queue = await find_queue(dashboard, request.path_params["queue"])
    key, before = request.query_params.get("key", ""), request.query_params.get("before")
    until = check_instant("before", before) if before else None

    def read(store: Store) -> Operation[ScheduleRow | None]:
        now = yield from queries.get_clock(store)
        return (yield from ledger.get_schedule(store, now, queue.name, key, before=until))

    row = await dashboard.read(read)
    if row is None:
        raise HTTPException(404, "There is no such schedule: it may have been deleted.")
    data = None if row.schedule.data is None else dashboard.redact(queue.name, row.schedule.data)
    here = queue_address("", queue.name, "schedule", key=key)
    values = {"queue": queue, "row": row, "data": data, "is_first": until is None, "here": here}
    return Page("schedule.html", f"Schedule {key[:40]} of {queue.name}", values)


async def workers(dashboard: Dashboard, request: Request) -> Page:
    """All workers, those that take jobs of one queue, or one of them."""
    given = request.query_params
    after = None
    if given.get("after"):
        after = given["after"], given.get("after_queue", ""), check_uuid("after_id", given.get("after_id"))
    queue, worker = (
        given.get("queue") or None,
        check_uuid("worker", given["worker"]) if given.get("worker") else None,
    )
    page = await dashboard.read(lambda store: queries.list_workers(store, after, queue=queue, worker=worker))
    # Workers of one process, one for each queue, have one state.
    processes = groupby(page.rows, lambda row: (row.boss, row.connected, row.gone_since))
    values = {
        "page": page,
        "processes": [list(rows) for _, rows in processes],
        "is_first": after is None,
        "queue": queue,
        "worker": worker,
    }
    return Page("workers.html", "Workers", values)


async def events(dashboard: Dashboard, request: Request) -> Page:
    """The warnings of maintenance, and recent events."""
    kind = request.query_params.get("kind") or None
    if kind is not None and kind not in _EVENT_KINDS:
        raise UsageError(f"kind: {kind[:20]!r} is not one of {', '.join(_EVENT_KINDS)}")

    def read(store: Store) -> Operation[tuple[Any, ...]]:
        now = yield from queries.get_clock(store)
        warnings = yield from store.statistics.get_warnings(None, None, 50)
        return now, warnings, (yield from queries.list_events(store, kind))

    now, warnings, rows = await dashboard.read(read)
    values = {
        "warnings": warnings,
        "recent": now - timedelta(minutes=3),
        "kind": kind,
        "kinds": _EVENT_KINDS,
        "events": [
            attrs.evolve(each, message=redact_message(dashboard.redact, each.queue, each.message))
            if each.error is not None and each.queue is not None
            else each
            for each in rows
        ],
    }
    return Page("events.html", "Events", values)


async def audit(dashboard: Dashboard, request: Request) -> Page:
    """The actions of people from the dashboard."""
    before = request.query_params.get("before")
    last = LAST_ID if not before else check_uuid("before", before)
    rows = await dashboard.read(lambda store: queries.list_audit(store, last))
    more = rows[-1].id if len(rows) == 100 else None
    return Page("audit.html", "Audit", {"rows": rows, "more": more, "is_first": last == LAST_ID})


async def pipeline(dashboard: Dashboard, request: Request) -> Page:
    """Exports, audits and bulk loads."""
    lakes, audits, loads = await dashboard.read(queries.list_pipeline)
    return Page("pipeline.html", "Pipeline", {"lakes": lakes, "audits": audits, "loads": loads})
