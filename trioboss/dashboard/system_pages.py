"""The pages of everything that is no queue: schedules, workers, events, the audit of actions, the pipeline."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import attrs
from starlette.requests import Request

from trioboss.dashboard import queries
from trioboss.dashboard.filters import LAST_ID
from trioboss.dashboard.pages import Dashboard, Page, redact_message
from trioboss.errors import UsageError
from trioboss.model.check import check_uuid
from trioboss.postgres.operation import Operation
from trioboss.store import Store

__all__ = ["audit", "events", "pipeline", "schedules", "workers"]

_EVENT_KINDS = {
    "attempt": "Attempts",
    "job": "Ended jobs",
    "tick": "Ticks",
    "worker": "Workers",
    "action": "Actions",
}


async def schedules(dashboard: Dashboard, request: Request) -> Page:
    """All schedules."""

    def read(store: Store) -> Operation[Any]:
        now = yield from queries.get_clock(store)
        return (yield from queries.list_schedules(store, now))

    return Page("schedules.html", "Schedules", {"schedules": await dashboard.read(read)})


async def workers(dashboard: Dashboard, request: Request) -> Page:
    """All workers."""
    return Page("workers.html", "Workers", {"workers": await dashboard.read(queries.list_workers)})


async def events(dashboard: Dashboard, request: Request) -> Page:
    """What maintenance has warned of, and recent events."""
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
            attrs.evolve(each, message=redact_message(dashboard, each.queue, each.message))
            if each.error is not None and each.queue is not None
            else each
            for each in rows
        ],
    }
    return Page("events.html", "Events", values)


async def audit(dashboard: Dashboard, request: Request) -> Page:
    """What people did from the dashboard."""
    before = request.query_params.get("before")
    last = LAST_ID if not before else check_uuid("before", before)
    rows = await dashboard.read(lambda store: queries.list_audit(store, UUID(str(last))))
    return Page("audit.html", "Audit", {"rows": rows, "more": rows[-1].id if len(rows) == 100 else None})


async def pipeline(dashboard: Dashboard, request: Request) -> Page:
    """Exports, audits and bulk loads."""
    lakes, audits, loads = await dashboard.read(queries.list_pipeline)
    return Page("pipeline.html", "Pipeline", {"lakes": lakes, "audits": audits, "loads": loads})
