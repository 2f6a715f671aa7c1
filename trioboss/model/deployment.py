"""The declarations of an app, and the changes that bring the database to them."""

import enum
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import attrs

from trioboss.model.payload import Json

__all__ = [
    "Action",
    "Change",
    "Declaration",
    "DeclaredQueue",
    "DeclaredSchedule",
    "Standing",
    "describe_differences",
    "describe_options",
    "in_order_of_creation",
]


@attrs.frozen
class DeclaredQueue:
    """A queue that an app needs, with the options that it names."""

    name: str
    options: Mapping[str, Any]


@attrs.frozen
class DeclaredSchedule:
    """A schedule that an app needs."""

    queue: str
    cron: str
    data: Json = None
    tz: str = "UTC"
    key: str = ""
    missed: str = "skip"
    options: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class Declaration:
    """All queues and schedules of one app. The label tells in the database what belongs to it."""

    label: str
    queues: tuple[DeclaredQueue, ...]
    schedules: tuple[DeclaredSchedule, ...]
    has_own_label: bool = True
    """False: the label is the module's name, which another app on the same database may have, too."""


class Standing(enum.Enum):
    """How the version of an app that is started relates to those that `trioboss migrate` has deployed."""

    NEVER_DEPLOYED = enum.auto()
    """No version of the app was: workers create and change what they need, for instance in development."""
    DEPLOYED = enum.auto()
    """It is the deployed one."""
    REPLACED = enum.auto()
    """It was deployed, and another one after it."""
    OTHER_DEPLOYED = enum.auto()
    """Another one is, and this one never was."""


class Action(enum.StrEnum):
    """The action on one queue or schedule."""

    CREATE = "create"
    UPDATE = "update"
    ADOPT = "adopt"
    """It is as declared, and belongs to the app from now on."""
    DELETE = "delete"
    LEAVE = "leave"
    """It is not as declared, but not made by this app: somebody has to decide."""
    REPORT = "report"
    """It was made by this app, which no longer declares it."""

    @property
    def changes_something(self) -> bool:
        """Whether the database is changed."""
        return self not in (Action.LEAVE, Action.REPORT)


@attrs.frozen
class Change:
    """One line of a plan."""

    action: Action
    kind: Literal["queue", "schedule"]
    queue: str
    key: str | None = None
    text: str = ""
    """The change, or the reason why there is none."""
    options: Mapping[str, Any] = attrs.field(factory=dict)
    """The options to create or change a queue with."""
    schedule: DeclaredSchedule | None = None

    def __str__(self) -> str:
        return self.describe(self.action)

    def describe(self, action: str) -> str:
        """The line, with this text for the action."""
        key = f" key {self.key!r}" if self.key else ""
        text = f": {self.text}" if self.text else ""
        return f"{action} {self.kind} {self.queue!r}{key}{text}"


def describe_options(options: Mapping[str, Any]) -> str:
    """Options as text, by name."""
    return ", ".join(f"{name}={_shown(value)}" for name, value in sorted(options.items()))


def describe_differences(differing: Mapping[str, tuple[object, object]]) -> str:
    """Options with their values now and as declared."""
    return ", ".join(f"{name} {_shown(was)} → {_shown(asked)}" for name, (was, asked) in differing.items())


def _shown(value: object) -> str:
    return str(value) if isinstance(value, enum.Enum) else repr(value)


def in_order_of_creation(queues: Iterable[DeclaredQueue]) -> list[DeclaredQueue]:
    """The queues so that a dead letter queue that is declared, too, comes before those that name it."""
    waiting = {queue.name: queue for queue in queues}
    ordered: list[DeclaredQueue] = []

    def add(queue: DeclaredQueue) -> None:
        if waiting.pop(queue.name, None) is None:
            return  # a cycle: the database refuses it
        dead_letter = queue.options.get("dead_letter")
        if dead_letter in waiting:
            add(waiting[dead_letter])
        ordered.append(queue)

    for queue in list(waiting.values()):
        add(queue)
    return ordered
