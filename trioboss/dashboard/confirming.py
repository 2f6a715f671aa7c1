"""The page before an action on jobs: it says what would happen, and to how many jobs.

Jobs that pass a filter are counted before anything can be pressed. A search reads so many jobs at a time, so that no
page takes long: the page counts on by itself, or a person presses the link.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import attrs
from starlette.datastructures import ImmutableMultiDict
from starlette.exceptions import HTTPException
from starlette.requests import Request

from trioboss.dashboard import queries
from trioboss.dashboard.changes import JOB_ACTIONS
from trioboss.dashboard.filters import LAST_ID, Counted, JobFilter, list_actions
from trioboss.dashboard.pages import Dashboard, Page, find_queue
from trioboss.dashboard.rendering import own_path, queue_address
from trioboss.dashboard.values import COUNT_LIMIT
from trioboss.errors import UsageError
from trioboss.model.check import check_uuid
from trioboss.model.queue import Queue
from trioboss.postgres.operation import Operation
from trioboss.store import Store

__all__ = ["ask", "check_action", "check_number", "confirm", "require_actor"]

Given = ImmutableMultiDict[str, Any]
"""The query of an address, or the fields of a form."""


def require_actor(dashboard: Dashboard) -> None:
    """Raise HTTPException if nothing can be changed here."""
    if dashboard.actor.boss is None:
        raise HTTPException(403, "This dashboard only reads: start it with an act_dsn to act.")


def check_action(action: str) -> str:
    """Something that can be done to jobs."""
    if action not in JOB_ACTIONS:
        raise UsageError(f"action: {action[:50]!r} is not one of {', '.join(JOB_ACTIONS)}")
    return action


def check_number(name: str, text: str) -> int:
    """A count that a page has handed on: how far an action is."""
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise UsageError(f"{name}: {text[:20]!r} is not a number of jobs")
    return int(text)


@attrs.frozen
class _Count:
    """How far counting is."""

    number: int
    counted: Counted
    """Jobs that came or changed later are neither counted nor changed."""
    searched: int = 0
    """About how many jobs were read for it."""
    cursor: UUID | None = None
    """Where to count on; None if everything was counted."""


async def confirm(dashboard: Dashboard, request: Request) -> Page:
    """The effect of an action, and on how many jobs: those that were selected, or all that pass the filter."""
    require_actor(dashboard)
    queue, given = await find_queue(dashboard, request.path_params["queue"]), request.query_params
    ids = [check_uuid("id", id) for id in given.getlist("id")]
    if "selected" in given and not ids:
        # The buttons below a list without a selection: without this they would act on the whole queue.
        raise UsageError("select at least one job")
    action = given.get("action") or _guess_action(given)
    if not action:
        return await _choose(dashboard, queue, given)
    filter, count = await _count(dashboard, queue, given, check_action(action), ids)
    possible = list_actions(filter.state, has_dead_letters=await _has_dead_letters(dashboard, queue))
    return _page(queue, given, action, ids, filter, count, possible)


async def _has_dead_letters(dashboard: Dashboard, queue: Queue) -> bool:
    return await dashboard.read(lambda store: queries.has_dead_letters(store, queue.name))


def _guess_action(given: Given) -> str:
    """The action that people mean most often for such jobs; for jobs in any state the page asks."""
    state = given.get("state") or ("failed" if given.get("error") else None)
    return list_actions(state)[0] if state else ""


async def ask(dashboard: Dashboard, queue: Queue, form: Given, problem: str) -> Page:
    """The page again, because something that was typed into it is wrong. Nothing is counted again."""
    ids = [check_uuid("id", id) for id in form.getlist("id")]
    counted = Counted.parse(form) if form.get("counted_on") else await dashboard.read(queries.get_counted)
    number = len(ids) or check_number("count", form.get("count") or "0")
    filter = attrs.evolve(JobFilter.parse(form, counted.on), high=LAST_ID)
    possible = list_actions(filter.state)
    return _page(queue, form, form["action"], ids, filter, _Count(number, counted), possible, problem)


async def _choose(dashboard: Dashboard, queue: Queue, given: Given) -> Page:
    now = await dashboard.read(queries.get_clock)
    filter = attrs.evolve(JobFilter.parse(given, now), high=LAST_ID)
    possible = list_actions(filter.state, has_dead_letters=await _has_dead_letters(dashboard, queue))
    values = _shared(queue, given, filter) | {"actions": possible, "effects": JOB_ACTIONS}
    return Page("choose.html", f"Act on jobs of {queue.name}", values)


async def _count(
    dashboard: Dashboard, queue: Queue, given: Given, action: str, ids: Sequence[UUID]
) -> tuple[JobFilter, _Count]:
    """Count the jobs that the action changes, from where the last page stopped."""
    cursor = check_uuid("cursor", given["cursor"]) if given.get("cursor") else LAST_ID
    number, searched = (check_number(name, given.get(name) or "0") for name in ("counted", "searched"))

    def read(store: Store) -> Operation[tuple[JobFilter, _Count]]:
        # Taken before anything is counted: all that it has as committed is seen by the statements after it.
        counted = Counted.parse(given) if given.get("counted_on") else (yield from queries.get_counted(store))
        filter = attrs.evolve(JobFilter.parse(given, counted.on), high=LAST_ID)
        if ids:
            return filter, _Count(len(ids), counted)
        rest = attrs.evolve(filter.for_action(action, counted), high=cursor)
        most = max(1, COUNT_LIMIT - number)
        page = yield from queries.list_jobs(store, queue.name, rest, most)
        found = min(number + len(page.jobs), COUNT_LIMIT)
        is_over = page.searched is None or found >= COUNT_LIMIT
        read = searched + (page.searched or 0)
        return filter, _Count(found, counted, read, None if is_over else page.next)

    return await dashboard.read(read)


def _shared(queue: Queue, given: Given, filter: JobFilter) -> dict[str, Any]:
    query = filter.query()
    jobs = queue_address("", queue.name, "jobs") + (query and f"?{query}")
    return {
        "queue": queue,
        "filter": filter,
        "fields": filter.fields(),
        "query": query,
        "back": own_path(given.get("back", ""), jobs),
    }


def _page(
    queue: Queue,
    given: Given,
    action: str,
    ids: Sequence[UUID],
    filter: JobFilter,
    count: _Count,
    possible: Sequence[str],
    problem: str | None = None,
) -> Page:
    shared = _shared(queue, given, filter)
    on = {"action": action, "back": shared["back"], "counted": count.number, "searched": count.searched}
    on |= {**count.counted.fields(), "cursor": count.cursor}
    hidden = {"queue": queue.name, "action": action, "count": count.number, "back": shared["back"]}
    of_filter = {**filter.fields(), **count.counted.fields()}
    values = shared | {
        "action": action,
        "actions": possible if action in possible else (*possible, action),
        "effect": JOB_ACTIONS[action],
        "ids": ids,
        "count": count.number,
        "counted_on": count.counted.on,
        "searched": count.searched,
        "count_on": None if count.cursor is None else filter.query(**on),
        "hidden": hidden | ({"id": [str(id) for id in ids]} if ids else of_filter),
        "priority": given.get("priority", "0"),
        "confirm": given.get("confirm", ""),
        "problem": problem,
    }
    title = f"{action.replace('-', ' ').capitalize()} jobs of {queue.name}"
    return Page("confirm.html", title, values, 400 if problem else 200)
