"""Operations that bring the queues and schedules of an app to what it declares.

An app changes what has its label, and nothing else: a queue that an operator or another app made stays as it is.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from trioboss.errors import QueueExists
from trioboss.model.deployment import (
    Action,
    Change,
    Declaration,
    DeclaredQueue,
    DeclaredSchedule,
    Standing,
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
Labels = Mapping[tuple[str, str | None], str | None]


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

    def plan(
        self, app: Declaration, *, adopt: bool = False, prune: bool = False, compare: bool = False
    ) -> Operation[list[Change]]:
        """The changes that are needed. ``adopt`` takes over what others made, ``prune`` deletes schedules of the app
        that it no longer declares. An option that the deployed version declares, and this one does not, gets its
        default.

        A policy or partition that differs raises QueueExists, because it cannot be changed. With ``compare`` it is a
        difference like others: the plan will not be carried out.
        """
        queues = {queue.name: queue for queue in (yield from self._queues.get_all())}
        schedules = {(each.queue, each.key): each for each in (yield from self._schedules.get_all(None))}
        rows = read_first((yield Batch((self._context.bind("get_labels"),))))
        labels: dict[tuple[str, str | None], str | None] = {(name, key): label for name, key, label in rows}
        deployed = yield from self._read_deployed_options(app.label)
        changes = [
            change
            for queue in in_order_of_creation(app.queues)
            for change in _plan_queue(
                _with_defaults(queue, deployed.get(queue.name, {})),
                queues.get(queue.name),
                labels,
                app.label,
                adopt,
                compare,
            )
        ]
        for declared in app.schedules:
            found = schedules.get((declared.queue, declared.key))
            changes += self._plan_schedule(declared, found, labels, app.label, adopt)
        return changes + list(_plan_leftovers(app, labels, prune))

    def plan_new(self, app: Declaration) -> list[Change]:
        """The changes that a schema without queues needs. No statement is executed: it may not be there yet."""
        queues = [_create_queue(queue) for queue in in_order_of_creation(app.queues)]
        for each in app.schedules:
            self._check_schedule(each)
        return queues + [_create_schedule(each) for each in app.schedules]

    def get_standing(self, app: Declaration) -> Operation[Standing]:
        """How this version of the app relates to those that were deployed."""
        rows = read_first((yield Batch((self._context.bind("get_deployments", label=app.label),))))
        digests = [digest for _, digest, _, _ in rows]
        if not digests:
            return Standing.NEVER_DEPLOYED
        digest = self._digest(app)
        if digest == digests[0]:
            return Standing.DEPLOYED
        return Standing.REPLACED if digest in digests else Standing.OTHER_DEPLOYED

    def get_declared_schedules(self) -> Operation[dict[str, set[tuple[str, str]]]]:
        """The queue and key of each schedule that the deployed version of each app declares, by the app's label."""
        rows = read_first((yield Batch((self._context.bind("get_deployments"),))))
        declared: dict[str, set[tuple[str, str]]] = {}
        for label, _, declaration, _ in rows:  # the last deployment of an app comes first
            if label not in declared:
                declared[label] = {(queue, key) for queue, key in declaration.get("schedules", [])}
        return declared

    def record(self, app: Declaration) -> Operation[None]:
        """Write down that this version of the app is deployed."""
        declaration = {
            "queues": {queue.name: _checked_options(queue) for queue in app.queues},
            "schedules": [[schedule.queue, schedule.key] for schedule in app.schedules],
        }
        values = {"digest": self._digest(app), "declaration": json.dumps(declaration)}
        yield Batch((self._context.bind("record_deployment", label=app.label, **values),))

    def _digest(self, app: Declaration) -> str:
        """A digest of all that the app declares. Only a digest of it is stored: schedules have data."""
        queues = {queue.name: _checked_options(queue) for queue in app.queues}
        schedules = {f"{each.queue}/{each.key}": self._check_schedule(each) for each in app.schedules}
        # Sorted: the order of declarations in a program is no difference.
        text = json.dumps([queues, schedules], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def _read_deployed_options(self, label: str) -> Operation[Mapping[str, Mapping[str, Any]]]:
        """The options that the deployed version of the app declares, by queue."""
        rows = read_first((yield Batch((self._context.bind("get_deployments", label=label),))))
        return rows[0][2].get("queues", {}) if rows else {}

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
            # Its label goes with its row.
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
        labels: Labels,
        label: str,
        adopt: bool,
    ) -> Iterator[Change]:
        asked = self._check_schedule(declared)
        if found is None:
            yield _create_schedule(declared)
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

    def _check_schedule(self, declared: DeclaredSchedule) -> dict[str, Any]:
        """The declaration, checked, and as the database would return it."""
        options = send_options(NewJob.from_options(None, declared.options))
        data = None if declared.data is None else encode(declared.data, "data", self._context.max_bytes)
        return {
            "cron": check_cron(declared.cron),
            "tz": check_timezone(declared.tz),
            "missed": str(check_missed(declared.missed)),
            "data": None if data is None else json.loads(data),
            "options": json.loads(json.dumps(options)),
        }


def _checked_options(queue: DeclaredQueue) -> dict[str, Any]:
    """The options that a queue is declared with, as the database would return them."""
    settings = QueueSettings(**queue.options)
    return {name: getattr(settings, name) for name in queue.options}


def _with_defaults(queue: DeclaredQueue, deployed: Mapping[str, Any]) -> DeclaredQueue:
    """The queue with the defaults of the options that the deployed version declares and this one does not."""
    settings = QueueSettings(**queue.options)
    defaults = {
        name: getattr(settings, name)
        for name in deployed
        if name not in queue.options and name not in _FIXED and hasattr(settings, name)
    }
    return attrs.evolve(queue, options={**queue.options, **defaults})


def _create_queue(declared: DeclaredQueue) -> Change:
    text = describe_options(declared.options)
    return Change(Action.CREATE, "queue", declared.name, text=text, options=declared.options)


def _create_schedule(declared: DeclaredSchedule) -> Change:
    text = f"{declared.cron} ({declared.tz})"
    return Change(Action.CREATE, "schedule", declared.queue, declared.key, text=text, schedule=declared)


def _plan_queue(
    declared: DeclaredQueue,
    found: Queue | None,
    labels: Labels,
    label: str,
    adopt: bool,
    compare: bool,
) -> Iterator[Change]:
    asked = QueueSettings(**declared.options)
    if found is None:
        yield _create_queue(declared)
        return
    differing = {
        name: (getattr(found, name), getattr(asked, name))
        for name in declared.options
        if getattr(asked, name) != getattr(found, name)
    }
    if (fixed := {name: differing[name] for name in _FIXED if name in differing}) and not compare:
        raise QueueExists(declared.name, fixed)
    owner = labels.get((declared.name, None))
    action, text = _decide(owner, label, adopt, describe_differences(differing))
    if action is not None:
        options = {name: declared.options[name] for name in differing} if action is Action.UPDATE else {}
        yield Change(action, "queue", declared.name, text=text, options=options)


def _decide(owner: str | None, label: str, adopt: bool, differences: str) -> tuple[Action | None, str]:
    """The action for a queue or schedule that exists already, by the app that owns it (``owner``), and by its
    differences from the declaration; and the text that explains it.
    """
    # Parts of other apps are left alone, however much they differ: two apps would undo each other's changes.
    if owner == label or adopt:
        if differences:
            return Action.UPDATE, differences
        return (None, "") if owner == label else (Action.ADOPT, "")
    if not differences:
        return None, ""
    whose = "it is not declared by an app" if owner is None else f"app {owner!r} declares it"
    return Action.LEAVE, f"{whose}, and it differs: {differences}"


def _plan_leftovers(app: Declaration, labels: Labels, prune: bool) -> Iterator[Change]:
    """The parts that the app declared once, and no longer does. Queues hold jobs: they are only reported."""
    queues = {queue.name for queue in app.queues}
    schedules = {(schedule.queue, schedule.key) for schedule in app.schedules}
    # Only with a label of its own is it certain that this app made them.
    reason = "no longer declared"
    if not app.has_own_label:
        reason = f"declared by another app or version with the label {app.label!r}"
    for (queue, key), label in sorted(labels.items(), key=str):
        if label != app.label:
            continue
        if key is None and queue not in queues:
            text = f"{reason}; `trioboss delete-queue {queue}` deletes it with its jobs"
            yield Change(Action.REPORT, "queue", queue, text=text)
        elif key is not None and (queue, key) not in schedules:
            command = f"`trioboss unschedule {queue}{f' --key {key}' if key else ''}`"
            remedy = f"{'--prune' if app.has_own_label else command} deletes it"
            action, text = (Action.DELETE, "") if prune else (Action.REPORT, f"; {remedy}")
            yield Change(action, "schedule", queue, key, text=reason + text)
