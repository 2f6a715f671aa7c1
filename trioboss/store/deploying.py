"""Operations that bring the queues and schedules of an app to what it declares.

An app changes what has its label, and nothing else: a queue that an operator or another app made stays as it is.
"""

import json
from collections.abc import Iterator, Mapping, Sequence

import attrs

from trioboss.errors import QueueExists
from trioboss.model.deployment import (
    Action,
    Change,
    Declaration,
    DeclaredQueue,
    DeclaredSchedule,
    describe_differences,
    describe_options,
    in_order_of_creation,
)
from trioboss.model.job import NewJob
from trioboss.model.payload import encode
from trioboss.model.queue import Queue, QueueSettings
from trioboss.model.schedule import Schedule, check_cron, check_missed, check_timezone
from trioboss.postgres.operation import Batch, Operation
from trioboss.store.context import Context
from trioboss.store.queues import QueueOperations
from trioboss.store.rows import read_first
from trioboss.store.schedules import ScheduleOperations, send_options

__all__ = ["DeployOperations"]

_FIXED = ("policy", "partition")


@attrs.frozen
class DeployOperations:
    """Compare what an app declares with the database, and change what differs."""

    _context: Context
    _queues: QueueOperations = attrs.field(init=False)
    _schedules: ScheduleOperations = attrs.field(init=False)

    @_queues.default
    def _make_queues(self) -> QueueOperations:
        return QueueOperations(self._context)

    @_schedules.default
    def _make_schedules(self) -> ScheduleOperations:
        return ScheduleOperations(self._context)

    def plan(self, app: Declaration, *, adopt: bool = False, prune: bool = False) -> Operation[list[Change]]:
        """What has to change. ``adopt`` takes over what others made, ``prune`` deletes schedules of the app that it
        no longer declares.
        """
        queues = {queue.name: queue for queue in (yield from self._queues.get_all())}
        schedules = {(each.queue, each.key): each for each in (yield from self._schedules.get_all(None))}
        rows = read_first((yield Batch((self._context.bind("get_labels"),))))
        labels: dict[tuple[str, str | None], str | None] = {(name, key): label for name, key, label in rows}
        changes = [
            change
            for queue in in_order_of_creation(app.queues)
            for change in _plan_queue(queue, queues.get(queue.name), labels, app.label, adopt)
        ]
        for declared in app.schedules:
            found = schedules.get((declared.queue, declared.key))
            changes += self._plan_schedule(declared, found, labels, app.label, adopt)
        return changes + list(_plan_leftovers(app, labels, prune))

    def apply(self, app: Declaration, changes: Sequence[Change]) -> Operation[None]:
        """Carry out a plan."""
        for change in changes:
            if change.kind == "queue":
                yield from self._change_queue(change, app.label)
            else:
                yield from self._change_schedule(change, app.label)

    def _change_queue(self, change: Change, label: str) -> Operation[None]:
        if not change.action.changes_something:
            return
        if change.action is Action.CREATE:
            yield from self._queues.create(change.queue, change.options)
        elif change.options:
            yield from self._queues.update(change.queue, change.options)
        yield Batch((self._context.bind("label_queue", queue=change.queue, label=label),))
        self._context.forget(change.queue)

    def _change_schedule(self, change: Change, label: str) -> Operation[None]:
        if not change.action.changes_something:
            return
        key = change.key or ""
        if change.action is Action.DELETE:
            yield from self._schedules.unschedule(change.queue, key)
            return
        if change.schedule is not None:
            new = change.schedule
            yield from self._schedules.schedule(
                new.queue, new.cron, new.data, new.tz, new.key, new.missed, new.options
            )
        yield Batch((self._context.bind("label_schedule", queue=change.queue, key=key, label=label),))

    def _plan_schedule(
        self,
        declared: DeclaredSchedule,
        found: Schedule | None,
        labels: Mapping[tuple[str, str | None], str | None],
        label: str,
        adopt: bool,
    ) -> Iterator[Change]:
        options = send_options(NewJob.from_options(None, declared.options))
        data = None if declared.data is None else encode(declared.data, "data", self._context.max_bytes)
        asked = {
            "cron": check_cron(declared.cron),
            "tz": check_timezone(declared.tz),
            "missed": str(check_missed(declared.missed)),
            "data": None if data is None else json.loads(data),
            "options": json.loads(json.dumps(options)),
        }
        if found is None:
            text = f"{declared.cron} ({declared.tz})"
            yield Change(
                Action.CREATE, "schedule", declared.queue, declared.key, text=text, schedule=declared
            )
            return
        now = {
            "cron": found.cron,
            "tz": found.timezone,
            "missed": str(found.missed),
            "data": found.data,
            "options": found.options,
        }
        # The data is not shown: a plan is printed and logged.
        differing = {name: (now[name], asked[name]) for name in asked if now[name] != asked[name]}
        shown = {name: pair for name, pair in differing.items() if name not in ("data", "options")}
        text = ", ".join(
            filter(None, [describe_differences(shown), *(f"other {n}" for n in differing.keys() - shown)])
        )
        owner = labels.get((declared.queue, declared.key))
        action, text = _decide(owner, label, adopt, text)
        if action is not None:
            new = declared if action is Action.UPDATE else None
            yield Change(action, "schedule", declared.queue, declared.key, text=text, schedule=new)


def _plan_queue(
    declared: DeclaredQueue,
    found: Queue | None,
    labels: Mapping[tuple[str, str | None], str | None],
    label: str,
    adopt: bool,
) -> Iterator[Change]:
    asked = QueueSettings(**declared.options)
    if found is None:
        text = describe_options(declared.options)
        yield Change(Action.CREATE, "queue", declared.name, text=text, options=declared.options)
        return
    differing = {
        name: (getattr(found, name), getattr(asked, name))
        for name in declared.options
        if getattr(asked, name) != getattr(found, name)
    }
    if fixed := {name: differing[name] for name in _FIXED if name in differing}:
        raise QueueExists(declared.name, fixed)
    owner = labels.get((declared.name, None))
    action, text = _decide(owner, label, adopt, describe_differences(differing))
    if action is not None:
        options = {name: declared.options[name] for name in differing} if action is Action.UPDATE else {}
        yield Change(action, "queue", declared.name, text=text, options=options)


def _decide(owner: str | None, label: str, adopt: bool, differences: str) -> tuple[Action | None, str]:
    """What to do with something that exists: by whom it belongs to, and how it differs from what is declared."""
    if owner == label or adopt:
        if differences:
            return Action.UPDATE, differences
        return (None, "") if owner == label else (Action.ADOPT, "")
    if not differences:
        return None, ""
    whose = "it is not declared by an app" if owner is None else f"app {owner!r} declares it"
    return Action.LEAVE, f"{whose}, and it differs: {differences}"


def _plan_leftovers(
    app: Declaration, labels: Mapping[tuple[str, str | None], str | None], prune: bool
) -> Iterator[Change]:
    """What the app declared once, and no longer does. Queues hold jobs: they are only reported."""
    queues = {queue.name for queue in app.queues}
    schedules = {(schedule.queue, schedule.key) for schedule in app.schedules}
    for (queue, key), label in sorted(labels.items(), key=str):
        if label != app.label:
            continue
        if key is None and queue not in queues:
            text = f"no longer declared; `trioboss delete-queue {queue}` deletes it with its jobs"
            yield Change(Action.REPORT, "queue", queue, text=text)
        elif key is not None and (queue, key) not in schedules:
            action, text = (Action.DELETE, "") if prune else (Action.REPORT, "; --prune deletes it")
            yield Change(action, "schedule", queue, key, text="no longer declared" + text)
