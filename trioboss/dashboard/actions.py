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
from trioboss.dashboard.filters import FIELDS, LAST_ID, JobFilter, last_id_at, time_of_id
from trioboss.dashboard.pages import Dashboard, Page, find_queue
from trioboss.dashboard.rendering import make_address, queue_address
from trioboss.dashboard.values import COUNT_LIMIT
from trioboss.errors import UsageError
from trioboss.model.check import check_instant, check_uuid
from trioboss.postgres.operation import Operation
from trioboss.store import Store

__all__ = [
    "Act",
    "act_on_jobs",
    "act_on_queue",
    "act_on_schedule",
    "act_redrive",
    "act_send",
    "confirm",
    "redrive",
    "send_form",
]

Act = Callable[[Dashboard, FormData, str], Awaitable["Page | str"]]
"""Takes the form and the person; returns a page, or the address to go on with."""

_CHUNK = 1000


def _field(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return value if isinstance(value, str) else ""


def _number(form: FormData, name: str) -> int:
    """A count in a hidden field: how far an action is."""
    text = _field(form, name) or "0"
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise UsageError(f"{name}: {text[:20]!r} is not a number of jobs")
    return int(text)


def _id_field(form: FormData, name: str) -> UUID | None:
    text = _field(form, name)
    return check_uuid(name, text) if text else None


def _check_action(action: str) -> str:
    if action not in JOB_ACTIONS:
        raise UsageError(f"action: {action[:50]!r} is not one of {', '.join(JOB_ACTIONS)}")
    return action


def _require_actor(dashboard: Dashboard) -> None:
    if dashboard.actor.boss is None:
        raise HTTPException(403, "This dashboard only reads: start it with an act_dsn to act.")


# -- jobs


async def confirm(dashboard: Dashboard, request: Request) -> Page:
    """What an action would do, and to how many jobs: those that were selected, or all that pass the filter."""
    _require_actor(dashboard)
    queue, given = await find_queue(dashboard, request.path_params["queue"]), request.query_params
    action = _check_action(given.get("action", ""))
    ids = [check_uuid("id", id) for id in given.getlist("id")]
    if "selected" in given and not ids:
        # The buttons below a list without a selection: without this they would act on the whole queue.
        raise UsageError("select at least one job")

    def read(store: Store) -> Operation[tuple[JobFilter, datetime, int, bool]]:
        now = yield from queries.get_clock(store)
        filter = attrs.evolve(JobFilter.parse(given, now), high=LAST_ID)
        if ids:
            return filter, now, len(ids), False
        changed = filter.for_action(action, now)
        return filter, now, *(yield from queries.count_jobs(store, queue.name, changed))

    filter, now, count, partial = await dashboard.read(read)
    query = filter.query()
    values = {
        "queue": queue,
        "action": action,
        "effect": JOB_ACTIONS[action],
        "ids": ids,
        "count": count,
        "partial": partial,
        "budget": queries.BUDGET,
        "filter": filter,
        "fields": filter.fields(),
        "query": query,
        "counted_on": now,
        "back": _own_path(
            given.get("back", ""), queue_address("", queue.name, "jobs") + (query and f"?{query}")
        ),
        "priority": given.get("priority", "0"),
        "needs_name": action == "delete",
    }
    return Page("confirm.html", f"{action.capitalize()} jobs of {queue.name}", values)


async def act_on_jobs(dashboard: Dashboard, form: FormData, user: str) -> Page | str:
    """Do something to selected jobs, or one chunk of those that pass a filter."""
    _require_actor(dashboard)
    name, action = _field(form, "queue"), _check_action(_field(form, "action"))
    if action == "delete" and _field(form, "confirm") != name:
        raise UsageError(f"confirm: to delete, type the name of the queue: {name}")
    priority = _parse_priority(_field(form, "priority")) if action == "priority" else None
    ids = [check_uuid("id", str(id)) for id in form.getlist("id")]
    if not ids:
        return await _act_on_filter(dashboard, form, Change(user, action, name), priority)
    filter = {"ids": [str(id) for id in ids[:100]], "priority": priority}
    change = Change(user, action, name, filter)
    changed = changes.change_jobs(dashboard.reader.store, change, ids, priority)
    _, affected = await dashboard.actor.act(changed)
    return _done(name, action, len(ids), affected, _field(form, "back"))


async def _act_on_filter(
    dashboard: Dashboard, form: FormData, change: Change, priority: int | None
) -> Page | str:
    name, store = str(change.queue), dashboard.reader.store
    if not _field(form, "counted_on"):
        raise UsageError("counted_on: the time of counting is missing")
    counted_on = check_instant("counted_on", _field(form, "counted_on"))
    examined, total, count = (_number(form, name) for name in ("examined", "affected", "count"))
    filter = JobFilter.parse({field: _field(form, field) for field in FIELDS}, counted_on)
    recorded: dict[str, Any] = {**filter.as_json(), "counted_on": counted_on.isoformat()}
    if priority is not None:
        recorded["priority"] = priority
    change = attrs.evolve(change, filter=recorded, id=_id_field(form, "audit"))
    begun = attrs.evolve(
        filter.for_action(change.action, counted_on), high=_id_field(form, "cursor") or LAST_ID
    )
    page = await dashboard.read(lambda store: queries.list_jobs(store, name, begun, _CHUNK))
    ids = [job.id for job in page.jobs]
    audit, affected = await dashboard.actor.act(changes.change_jobs(store, change, ids, priority))
    total, examined = total + affected, examined + len(ids)
    if page.next is None:
        return _done(name, change.action, examined, total, _field(form, "back"))
    hidden = {
        **filter.fields(),
        "queue": name,
        "action": change.action,
        "counted_on": counted_on.isoformat(),
        "priority": "" if priority is None else str(priority),
        "confirm": name,
        "cursor": str(page.next),
        "audit": str(audit),
        "affected": str(total),
        "examined": str(examined),
        "count": str(count),
        "back": _field(form, "back"),
    }
    return _progress("/act/jobs", hidden, change.action, total, examined)


def _progress(target: str, hidden: dict[str, str], action: str, affected: int, examined: int) -> Page:
    values = {
        "target": target,
        "hidden": hidden,
        "action": action,
        "affected": affected,
        "examined": examined,
        "expected": max(int(hidden["count"]), examined),
        "back": _own_path(hidden["back"], queue_address("", hidden["queue"], "jobs")),
    }
    return Page("progress.html", f"{action.capitalize()}: {affected:,} jobs so far", values)


def _own_path(path: str, default: str) -> str:
    """The path, if it is one of the dashboard: a form must not lead elsewhere."""
    is_own = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    return path.split("#")[0] if is_own else default


def _done(queue: str, action: str, requested: int, affected: int, back: str) -> str:
    """The address of the page that the person came from, with the result of the action."""
    path = _own_path(back, queue_address("", queue, "jobs"))
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
    """Pause or unpause a queue."""
    _require_actor(dashboard)
    name, action = _field(form, "queue"), _field(form, "action")
    if action not in ("pause", "unpause"):
        raise UsageError(f"action: {action[:50]!r} is not pause or unpause")
    change = Change(user, action, name)
    await dashboard.actor.act(changes.change_queue(dashboard.reader.store, change, paused=action == "pause"))
    return queue_address("", name)


async def act_on_schedule(dashboard: Dashboard, form: FormData, user: str) -> Page | str:
    """Pause or unpause a schedule, or send its job now."""
    _require_actor(dashboard)
    queue, key, action = _field(form, "queue"), _field(form, "key"), _field(form, "action")
    store = dashboard.reader.store
    change = Change(user, action, queue, {"schedule": key})
    if action in ("pause-schedule", "unpause-schedule"):
        await dashboard.actor.act(
            changes.pause_schedule(store, change, key, paused=action == "pause-schedule")
        )
        return "/schedules"
    if action != "run-schedule":
        raise UsageError(f"action: {action[:50]!r} is not run-schedule, pause-schedule or unpause-schedule")
    found = await dashboard.read(lambda store: store.schedules.get_all(queue))
    schedule = next((each for each in found if each.key == key), None)
    if schedule is None:
        raise HTTPException(404, "There is no such schedule.")
    id = await dashboard.actor.act(changes.send(store, change, schedule.data, schedule.options))
    return "/schedules" if id is None else queue_address("", queue, "jobs", id)


# -- sending


async def send_form(dashboard: Dashboard, request: Request) -> Page:
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
    source = request.query_params.get("source") or None

    def read(store: Store) -> Operation[tuple[datetime, list[Any], list[Any]]]:
        now = yield from queries.get_clock(store)
        groups = yield from store.redriving.preview(queue.name, None, None, COUNT_LIMIT)
        if source is None:
            return now, groups, groups
        return now, groups, (yield from store.redriving.preview(queue.name, None, source, COUNT_LIMIT))

    now, groups, shown = await dashboard.read(read)
    values = {
        "queue": queue,
        "groups": shown,
        "count": sum(group.count for group in shown),
        "source": source,
        "sources": sorted({group.source for group in groups if group.source is not None}),
        # Ids of dead letters begin with the clock of the database, which made them.
        "last": last_id_at(now),
    }
    return Page("redrive.html", f"Redrive {queue.name}", values)


async def act_redrive(dashboard: Dashboard, form: FormData, user: str) -> Page | str:
    """Send one chunk of dead letters again."""
    _require_actor(dashboard)
    name, source = _field(form, "queue"), _field(form, "source") or None
    last, total, count = (
        check_uuid("last", _field(form, "last")),
        _number(form, "affected"),
        _number(form, "count"),
    )
    values = {"source": source, "counted_on": time_of_id(last).isoformat()}
    change = Change(user, "redrive", name, values, _id_field(form, "audit"))
    run = changes.redrive(dashboard.reader.store, change, source, _id_field(form, "cursor"), last, _CHUNK)
    chunk = await dashboard.actor.act(run)
    total += chunk.affected
    if chunk.end is None:
        return _done(name, "redrive", max(total, count), total, queue_address("", name))
    hidden = {
        "queue": name,
        "source": source or "",
        "last": str(last),
        "cursor": str(chunk.end),
        "audit": str(chunk.audit),
        "affected": str(total),
        "count": str(count),
        "back": queue_address("", name),
    }
    return _progress("/act/redrive", hidden, "redrive", total, total)
