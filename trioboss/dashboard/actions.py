"""Actions: the requests of the buttons, and the forms to redrive and to send.

An action on many jobs is done in chunks, one for each request: the page sends the next one by itself, or a person
presses the button. It is bounded by the moment of counting: jobs that came or changed later are left alone.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl
from uuid import UUID

import attrs
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request

from trioboss.dashboard import changes, queries
from trioboss.dashboard.changes import Change
from trioboss.dashboard.confirming import ask, check_action, check_number, require_actor
from trioboss.dashboard.filters import FIELDS, LAST_ID, Counted, JobFilter
from trioboss.dashboard.pages import Dashboard, Page, find_queue, get_queue
from trioboss.dashboard.rendering import make_address, own_path, queue_address
from trioboss.errors import UsageError
from trioboss.model.check import check_instant, check_uuid
from trioboss.model.queue import Queue

__all__ = [
    "Act",
    "act_on_jobs",
    "act_on_queue",
    "act_on_schedule",
    "act_redrive",
    "act_send",
    "redrive",
    "send_form",
    "unpack",
]

Act = Callable[[Dashboard, FormData, str], Awaitable["Page | str"]]
"""Takes the form and the person; returns a page, or the address to go on with."""

_CHUNK = 1000
_NO_SCHEDULE = "There is no such schedule: it may have been deleted."


def _field(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return value if isinstance(value, str) else ""


def _number(form: FormData, name: str) -> int:
    return check_number(name, _field(form, name) or "0")


def _id_field(form: FormData, name: str) -> UUID | None:
    text = _field(form, name)
    return check_uuid(name, text) if text else None


def _counted(form: FormData) -> Counted:
    if not _field(form, "counted_on"):
        raise UsageError("counted_on: the time of counting is missing")
    return Counted.parse({field: _field(form, field) for field in ("counted_on", "committed")})


def unpack(form: FormData) -> FormData:
    """The fields of a form, and those that its page has packed into one: see `pack`. Typed values win."""
    try:
        packed = parse_qsl(_field(form, "fields"), keep_blank_values=True, max_num_fields=2000)
    except ValueError:
        raise UsageError("fields: this form is not one of the dashboard") from None
    return FormData([*packed, *form.multi_items()])


# -- jobs


async def act_on_jobs(dashboard: Dashboard, form: FormData, user: str) -> Page | str:
    """Do something to selected jobs, or one chunk of those that pass a filter."""
    require_actor(dashboard)
    name, action = _field(form, "queue"), check_action(_field(form, "action"))
    try:
        if action == "delete" and _field(form, "confirm") != name:
            raise UsageError(f"confirm: to delete, type the name of the queue: {name}")
        priority = _parse_priority(_field(form, "priority")) if action == "priority" else None
    except UsageError as error:
        return await ask(dashboard, await get_queue(dashboard, name), form, str(error))
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
    counted = _counted(form)
    examined, total, count = (_number(form, name) for name in ("examined", "affected", "count"))
    filter = JobFilter.parse({field: _field(form, field) for field in FIELDS}, counted.on)
    recorded: dict[str, Any] = {**filter.as_json(), "counted_on": counted.on.isoformat()}
    if priority is not None:
        recorded["priority"] = priority
    change = attrs.evolve(change, filter=recorded, id=_id_field(form, "audit"))
    begun = attrs.evolve(filter.for_action(change.action, counted), high=_id_field(form, "cursor") or LAST_ID)
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
        **counted.fields(),
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
        "back": own_path(hidden["back"], queue_address("", hidden["queue"], "jobs")),
    }
    return Page("progress.html", f"{action.capitalize()}: {affected:,} jobs so far", values)


def _done(queue: str, action: str, requested: int, affected: int, back: str) -> str:
    """The address of the page that the person came from, with the result of the action."""
    path = own_path(back, queue_address("", queue, "jobs"))
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
    require_actor(dashboard)
    name, action = _field(form, "queue"), _field(form, "action")
    if action not in ("pause", "unpause"):
        raise UsageError(f"action: {action[:50]!r} is not pause or unpause")
    change = Change(user, action, name)
    await dashboard.actor.act(changes.change_queue(dashboard.reader.store, change, paused=action == "pause"))
    return queue_address("", name)


async def act_on_schedule(dashboard: Dashboard, form: FormData, user: str) -> Page | str:
    """Pause or unpause a schedule, or send its job now."""
    require_actor(dashboard)
    queue, key, action = _field(form, "queue"), _field(form, "key"), _field(form, "action")
    store, back = dashboard.reader.store, own_path(_field(form, "back"), "/schedules")
    change = Change(user, action, queue, {"schedule": key})
    if action in ("pause-schedule", "unpause-schedule"):
        pause = changes.pause_schedule(store, change, key, paused=action == "pause-schedule")
        if not await dashboard.actor.act(pause):
            raise HTTPException(404, _NO_SCHEDULE)
        return back
    if action != "run-schedule":
        raise UsageError(f"action: {action[:50]!r} is not run-schedule, pause-schedule or unpause-schedule")
    found = await dashboard.read(lambda store: store.schedules.get_all(queue))
    schedule = next((each for each in found if each.key == key), None)
    if schedule is None:
        raise HTTPException(404, _NO_SCHEDULE)
    id = await dashboard.actor.act(changes.send(store, change, schedule.data, schedule.options))
    return back if id is None else queue_address("", queue, "jobs", id)


# -- sending


async def send_form(dashboard: Dashboard, request: Request) -> Page:
    """The form of a new job."""
    require_actor(dashboard)
    return _send_page(await find_queue(dashboard, request.path_params["queue"]), {}, None)


def _send_page(queue: Queue, given: Mapping[str, str], problem: str | None) -> Page:
    values = {"queue": queue, "problem": problem, "given": given}
    return Page("send.html", f"Send a job to {queue.name}", values, 400 if problem else 200)


async def act_send(dashboard: Dashboard, form: FormData, user: str) -> Page | str:
    """Send a job."""
    require_actor(dashboard)
    queue = await get_queue(dashboard, _field(form, "queue"))
    given = {name: _field(form, name) for name in ("data", "priority", "singleton_key", "start_after")}
    try:
        data = _parse_data(given["data"]) if given["data"].strip() else None
        options: dict[str, Any] = {}
        if given["priority"].strip():
            options["priority"] = _parse_priority(given["priority"])
        if given["singleton_key"]:
            options["singleton_key"] = given["singleton_key"]
        if given["start_after"].strip():
            options["start_after"] = _parse_start(given["start_after"].strip())
        change = Change(user, "send", queue.name)
        id = await dashboard.actor.act(changes.send(dashboard.reader.store, change, data, options))
    except UsageError as error:
        return _send_page(queue, given, str(error))
    if id is None:
        return _send_page(queue, given, "The policy of the queue has refused the job.")
    return queue_address("", queue.name, "jobs", id)


def _parse_data(text: str) -> Any:
    try:
        return json.loads(text, parse_float=_parse_float)
    except UsageError:
        raise
    except (ValueError, RecursionError) as error:
        raise UsageError(f"data: this is not JSON: {error}") from None


def _parse_float(text: str) -> float:
    """The number, if a float has all its digits: a job must not have other data than a person has typed."""
    number = float(text)
    if Decimal(repr(number)) != Decimal(text):
        raise UsageError(f"data: {text[:50]} has more digits than a float keeps: send it as text, in quotes")
    return number


def _parse_start(text: str) -> float | datetime:
    """Seconds, or an instant; without a zone it is in UTC. The script of the page adds the zone of the browser."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"start_after: {text[:50]!r} is neither seconds nor a time: 2026-03-01T12:00"
        ) from None
    return check_instant("start_after", instant if instant.tzinfo else instant.replace(tzinfo=UTC))


# -- redriving


async def redrive(dashboard: Dashboard, request: Request) -> Page:
    """Which dead letters would be sent again, and where to."""
    queue = await find_queue(dashboard, request.path_params["queue"])
    source = request.query_params.get("source") or None
    found = await dashboard.read(lambda store: queries.count_dead_letters(store, queue.name))
    shown = [group for group in found.groups if source is None or group.source == source]
    count = sum(group.count for group in shown if group.destination is not None)
    values = {
        "queue": queue,
        "groups": shown,
        "count": count,
        "shown_count": f"{count:,}" if not count or found.searched is None else f"more than {count - 1:,}",
        "searched": found.searched,
        "source": source,
        "sources": sorted({group.source for group in found.groups if group.source is not None}),
        "counted": found.counted.fields(),
    }
    return Page("redrive.html", f"Redrive {queue.name}", values)


async def act_redrive(dashboard: Dashboard, form: FormData, user: str) -> Page | str:
    """Send one chunk of dead letters again."""
    require_actor(dashboard)
    name, source, counted = _field(form, "queue"), _field(form, "source") or None, _counted(form)
    total, count = _number(form, "affected"), _number(form, "count")
    values = {"source": source, "counted_on": counted.on.isoformat()}
    change = Change(user, "redrive", name, values, _id_field(form, "audit"))
    cursor, store = _id_field(form, "cursor"), dashboard.reader.store
    run = changes.redrive(store, change, source, cursor, counted.committed, _CHUNK)
    chunk = await dashboard.actor.act(run)
    total += chunk.affected
    if chunk.end is None:
        return _done(name, "redrive", max(total, count), total, queue_address("", name))
    hidden = {
        **counted.fields(),
        "queue": name,
        "source": source or "",
        "cursor": str(chunk.end),
        "audit": str(chunk.audit),
        "affected": str(total),
        "count": str(count),
        "back": queue_address("", name),
    }
    return _progress("/act/redrive", hidden, "redrive", total, total)
