"""Actions: a page that says what would happen, with the number of jobs, and the requests that do it.

An action on many jobs is done in chunks, one for each request: the page sends the next one by itself, or a person
presses the button. It is bounded by the time of counting: jobs that came later are left alone.
"""

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import attrs
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request

from trioboss.dashboard import changes, queries
from trioboss.dashboard.changes import JOB_ACTIONS, Change
from trioboss.dashboard.filters import LAST_ID, JobFilter
from trioboss.dashboard.pages import Dashboard, Page, find_queue
from trioboss.dashboard.rendering import make_address, queue_address
from trioboss.errors import UsageError
from trioboss.model.check import check_instant, check_uuid
from trioboss.model.job import make_id

__all__ = [
    "Act",
    "act_on_jobs",
    "act_on_queue",
    "act_on_schedule",
    "act_redrive",
    "act_send",
    "confirm",
    "redrive",
    "write",
]

Act = Callable[[Dashboard, FormData, str], Awaitable["Page | str"]]
"""Takes the form and the person; returns a page, or the address to go on with."""

_CHUNK = 1000


def _field(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return value if isinstance(value, str) else ""


def _require_actor(dashboard: Dashboard) -> None:
    if dashboard.actor.boss is None:
        raise HTTPException(403, "This dashboard only reads: start it with an act_dsn to act.")


# -- jobs


async def confirm(dashboard: Dashboard, request: Request) -> Page:
    """What an action would do, and to how many jobs: those that were selected, or all that pass the filter."""
    _require_actor(dashboard)
    queue = await find_queue(dashboard, request.path_params["queue"])
    action = request.query_params.get("action", "")
    if action not in JOB_ACTIONS:
        raise UsageError(f"action: {action[:50]!r} is not one of {', '.join(JOB_ACTIONS)}")
    ids = [check_uuid("id", id) for id in request.query_params.getlist("id")]
    now = await dashboard.read(queries.get_clock)
    filter = attrs.evolve(JobFilter.parse(request.query_params, now), high=LAST_ID)
    count, partial = len(ids), False
    if not ids:
        filter = attrs.evolve(filter, until=now if filter.until is None else min(filter.until, now))
        count, partial = await dashboard.read(lambda store: queries.count_jobs(store, queue.name, filter))
    values = {
        "queue": queue,
        "action": action,
        "effect": JOB_ACTIONS[action],
        "ids": ids,
        "count": count,
        "partial": partial,
        "filter": filter,
        "query": filter.query(),
        "priority": request.query_params.get("priority", "0"),
        "needs_name": action == "delete",
    }
    return Page("confirm.html", f"{action.capitalize()} jobs of {queue.name}", values)


async def act_on_jobs(dashboard: Dashboard, form: FormData, user: str) -> Page | str:
    """Do something to selected jobs, or one chunk of those that pass a filter."""
    _require_actor(dashboard)
    name, action = _field(form, "queue"), _field(form, "action")
    if action == "delete" and _field(form, "confirm") != name:
        raise UsageError(f"confirm: to delete, type the name of the queue: {name}")
    priority = _parse_priority(_field(form, "priority")) if action == "priority" else None
    store = dashboard.reader.store
    audit = _field(form, "audit")
    change = Change(user, action, name, id=UUID(audit) if audit else None)
    ids = [check_uuid("id", str(id)) for id in form.getlist("id")]
    if ids:
        change = attrs.evolve(change, filter={"ids": [str(id) for id in ids[:100]], "priority": priority})
        _, affected = await dashboard.actor.act(changes.change_jobs(store, change, ids, priority))
        return _done(name, action, len(ids), affected, _field(form, "back"))
    return await _act_on_filter(dashboard, form, change, priority)


async def _act_on_filter(
    dashboard: Dashboard, form: FormData, change: Change, priority: int | None
) -> Page | str:
    name, store = str(change.queue), dashboard.reader.store
    now = await dashboard.read(queries.get_clock)
    fields = {
        field: _field(form, field) for field in ("state", "key", "error", "attempt", "text", "since", "until")
    }
    if not fields["until"]:
        raise UsageError("until: the time of counting is missing")
    filter = JobFilter.parse(fields, now)
    cursor = _field(form, "cursor")
    begun = attrs.evolve(filter, high=check_uuid("cursor", cursor) if cursor else LAST_ID)
    page = await dashboard.read(lambda store: queries.list_jobs(store, name, begun, _CHUNK))
    change = attrs.evolve(
        change, filter=filter.as_json() | ({} if priority is None else {"priority": priority})
    )
    ids = [job.id for job in page.jobs]
    audit, affected = await dashboard.actor.act(changes.change_jobs(store, change, ids, priority))
    total = int(_field(form, "affected") or 0) + affected
    examined = int(_field(form, "examined") or 0) + len(ids)
    if page.next is None:
        return _done(name, change.action, examined, total, _field(form, "back"))
    hidden = {
        **fields,
        "queue": name,
        "action": change.action,
        "priority": "" if priority is None else str(priority),
        "confirm": name,
        "cursor": str(page.next),
        "audit": str(audit),
        "affected": str(total),
        "examined": str(examined),
        "count": _field(form, "count"),
        "back": _field(form, "back"),
    }
    return _progress("/act/jobs", hidden, change.action, total, examined)


def _progress(target: str, hidden: dict[str, str], action: str, affected: int, examined: int) -> Page:
    count = hidden["count"]
    expected = int(count) if count.isdigit() else 0
    values = {
        "target": target,
        "hidden": hidden,
        "action": action,
        "affected": affected,
        "examined": examined,
        "expected": max(expected, examined),
    }
    return Page("progress.html", f"{action.capitalize()}: {affected:,} jobs so far", values)


def _done(queue: str, action: str, requested: int, affected: int, back: str) -> str:
    """The address to go on with: the page that the person came from, with what was done."""
    # Only our own paths: a form must not lead elsewhere.
    path = (
        back
        if back.startswith("/") and not back.startswith("//") and "\\" not in back
        else queue_address("", queue, "jobs")
    )
    path = path.split("#")[0]
    sign = "&" if "?" in path else "?"
    return f"{path}{sign}{make_address('', done=f'{action}:{affected}:{requested}')[2:]}"


def _parse_priority(text: str) -> int:
    try:
        priority = int(text)
    except ValueError:
        priority = 2**31
    if not -(2**31) <= priority < 2**31:
        raise UsageError(f"priority: {text[:20]!r} is not a priority")
    return priority


# -- queues and schedules


async def act_on_queue(dashboard: Dashboard, form: FormData, user: str) -> Page | str:
    """Pause or resume a queue."""
    _require_actor(dashboard)
    name, action = _field(form, "queue"), _field(form, "action")
    if action not in ("pause", "resume-queue"):
        raise UsageError(f"action: {action[:50]!r} is not pause or resume-queue")
    change = Change(user, action, name)
    await dashboard.actor.act(changes.change_queue(dashboard.reader.store, change, paused=action == "pause"))
    return queue_address("", name)


async def act_on_schedule(dashboard: Dashboard, form: FormData, user: str) -> Page | str:
    """Pause or resume a schedule, or send its job now."""
    _require_actor(dashboard)
    queue, key, action = _field(form, "queue"), _field(form, "key"), _field(form, "action")
    store = dashboard.reader.store
    change = Change(user, action, queue, {"schedule": key})
    if action in ("pause-schedule", "resume-schedule"):
        await dashboard.actor.act(
            changes.pause_schedule(store, change, key, paused=action == "pause-schedule")
        )
        return "/schedules"
    if action != "run-schedule":
        raise UsageError(f"action: {action[:50]!r} is not run-schedule, pause-schedule or resume-schedule")
    found = await dashboard.read(lambda store: store.schedules.get_all(queue))
    schedule = next((each for each in found if each.key == key), None)
    if schedule is None:
        raise HTTPException(404, "There is no such schedule.")
    id = await dashboard.actor.act(changes.send(store, change, schedule.data, schedule.options))
    return "/schedules" if id is None else queue_address("", queue, "jobs", id)


# -- sending


async def write(dashboard: Dashboard, request: Request) -> Page:
    """The form of a new job."""
    _require_actor(dashboard)
    queue = await find_queue(dashboard, request.path_params["queue"])
    return Page("send.html", f"Send a job to {queue.name}", {"queue": queue, "problem": None, "given": {}})


async def act_send(dashboard: Dashboard, form: FormData, user: str) -> Page | str:
    """Send a job."""
    _require_actor(dashboard)
    queue = await find_queue(dashboard, _field(form, "queue").replace("/", "~"))
    given = {name: _field(form, name) for name in ("data", "priority", "singleton_key", "start_after")}
    try:
        data = json.loads(given["data"]) if given["data"].strip() else None
        options: dict[str, Any] = {}
        if given["priority"].strip():
            options["priority"] = _parse_priority(given["priority"])
        if given["singleton_key"]:
            options["singleton_key"] = given["singleton_key"]
        if given["start_after"].strip():
            options["start_after"] = _parse_start(given["start_after"].strip())
        change = Change(user, "send", queue.name)
        id = await dashboard.actor.act(changes.send(dashboard.reader.store, change, data, options))
    except (ValueError, RecursionError) as error:
        text = str(error) if isinstance(error, UsageError) else f"data: this is not JSON: {error}"
        return Page(
            "send.html", f"Send a job to {queue.name}", {"queue": queue, "problem": text, "given": given}
        )
    if id is None:
        text = "The policy of the queue has refused the job."
        return Page(
            "send.html", f"Send a job to {queue.name}", {"queue": queue, "problem": text, "given": given}
        )
    return queue_address("", queue.name, "jobs", id)


def _parse_start(text: str) -> float | datetime:
    try:
        return float(text)
    except ValueError:
        instant = check_instant("start_after", text if "+" in text or text.endswith("Z") else f"{text}+00:00")
        return instant.astimezone(UTC)


# -- redriving


async def redrive(dashboard: Dashboard, request: Request) -> Page:
    """Which dead letters would be sent again, and where to."""
    queue = await find_queue(dashboard, request.path_params["queue"])
    last = make_id()
    groups = await dashboard.read(lambda store: store.redriving.preview(queue.name, None, None, 10_001))
    values = {
        "queue": queue,
        "groups": groups,
        "count": sum(group.count for group in groups),
        "sources": sorted({group.source for group in groups if group.source is not None}),
        "last": last,
    }
    return Page("redrive.html", f"Redrive {queue.name}", values)


async def act_redrive(dashboard: Dashboard, form: FormData, user: str) -> Page | str:
    """Send one chunk of dead letters again."""
    _require_actor(dashboard)
    name, source, audit = _field(form, "queue"), _field(form, "source") or None, _field(form, "audit")
    cursor, last = _field(form, "cursor"), check_uuid("last", _field(form, "last"))
    after = check_uuid("cursor", cursor) if cursor else None
    values = {"source": source, "last": str(last)}
    change = Change(user, "redrive", name, values, UUID(audit) if audit else None)
    store = dashboard.reader.store
    chunk = await dashboard.actor.act(changes.redrive(store, change, source, after, last, _CHUNK))
    total = int(_field(form, "affected") or 0) + chunk.affected
    if chunk.end is None:
        return _done(name, "redrive", max(total, int(_field(form, "count") or 0)), total, "")
    hidden = {
        "queue": name,
        "source": source or "",
        "last": str(last),
        "cursor": str(chunk.end),
        "audit": str(chunk.audit),
        "affected": str(total),
        "count": _field(form, "count"),
    }
    return _progress("/act/redrive", hidden, "redrive", total, total)
