"""The public names of trioboss, by subject, as directives of autodoc."""

import inspect
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import get_args, get_type_hints

import attrs

import trioboss
from docs.pages.docstrings import module_texts
from trioboss.api.boss import Startable
from trioboss.model.job import Lease
from trioboss.model.payload import AnyTypedDict
from trioboss.model.queue import QueueSettings
from trioboss.model.schedule import Missed
from trioboss.postgres.embedded import EmbeddedPostgres

__all__ = [
    "SUBJECTS",
    "describe_aliases",
    "describe_boss",
    "describe_sync_boss",
    "describe_types",
    "find_aliases",
    "find_types",
    "methods_of",
    "resolve_name",
]

SUBJECTS = {
    "Queues": "create_queue update_queue delete_queue get_queue get_queues pause resume_queue",
    "Numbers of a queue": (
        "get_queue_stats get_all_queue_stats get_queue_stats_history get_queue_size get_blocked_keys get_warnings"
    ),
    "Sending": (
        "send send_after send_throttled send_debounced send_once send_singleton insert "
        "publish subscribe unsubscribe"
    ),
    "Working": "work off_work notify_worker use on_complete off_complete open_lifespan wait_listening",
    "Fetching and settling manually": "fetch fetch_completed complete fail touch",
    "Changing jobs": (
        "cancel resume retry update_job delete_job delete_queued_jobs delete_all_queued_jobs delete_stored_jobs "
        "delete_all_jobs clear_storage redrive"
    ),
    "Finding jobs and waiting for them": "get_job_by_id find_jobs why wait_for follow",
    "Schedules": "schedule unschedule get_schedules",
    "Events": "events listen",
    "The boss itself": (
        "transaction unchecked_transaction maintain statistics stop close has_ended is_pooled schema "
        "is_installed schema_version"
    ),
}
"""The methods of `Boss` and `SyncBoss` by subject. A method that is in none of them is shown at the end."""


_OTHER_ALIASES = {
    "AnyConn": "api.blocking",
    "Redact": "model.described_error",
    "Targets": "store.targets",
}
"""Names of types that stand in public signatures and cannot be imported from trioboss, by their module."""


def find_aliases() -> dict[str, str]:
    """Names of types, with their modules: autodoc finds no text for them."""
    exported = [name for name in trioboss.__all__ if name != "__version__" and _is_alias(name)]
    return dict(sorted((_OTHER_ALIASES | {name: trioboss._HOMES[name] for name in exported}).items()))


def _is_alias(name: str) -> bool:
    thing = getattr(trioboss, name)
    return not (inspect.isclass(thing) or inspect.isroutine(thing))


def methods_of(owner: object) -> list[str]:
    """The public methods and properties of a class."""
    return [
        name
        for name, member in inspect.getmembers(owner)
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
    ]


def _by_subject(names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    left = set(names)
    for subject, listed in SUBJECTS.items():
        found = [name for name in listed.split() if name in left]
        left -= set(found)
        if found:
            yield subject, found
    if left:
        yield "More", sorted(left)


def _describe(owner: type) -> str:
    lines = []
    for subject, names in _by_subject(methods_of(owner)):
        lines += [f"## {subject}", "", "```{eval-rst}"]
        for name in names:
            is_property = isinstance(getattr(owner, name), property)
            kind = "autoproperty" if is_property else "automethod"
            lines += [f".. {kind}:: trioboss.{owner.__name__}.{name}"]
        lines += ["```", ""]
    return "\n".join(lines)


def describe_boss() -> str:
    """All methods of `Boss`."""
    return _describe(trioboss.Boss)


def describe_sync_boss() -> str:
    """All methods of `SyncBoss`."""
    return _describe(trioboss.SyncBoss)


def describe_aliases() -> str:
    """The names of types, with the text below each in its module."""
    lines = ["```{eval-rst}"]
    for name, module in find_aliases().items():
        text = module_texts(import_module(f"trioboss.{module}"))[name]
        kind = "py:data:: trioboss." if name in trioboss.__all__ else "py:type:: "
        lines += [f".. {kind}{name}", "", *(f"   {line}".rstrip() for line in text.splitlines()), ""]
    return "\n".join([*lines, "```"])


# -- types without a public name


def _parts(owner: type) -> list[type]:
    """The classes of trioboss in the fields of a class, also within tuples and unions."""
    todo, found = [field.type for field in attrs.fields(attrs.resolve_types(owner))], []
    while todo:
        annotation = todo.pop(0)
        todo += get_args(annotation)
        if isinstance(annotation, type) and annotation.__module__.startswith("trioboss."):
            found.append(annotation)
    return found


def find_types() -> list[type]:
    """The classes that public signatures name and that trioboss does not export, and those of their fields."""
    statistics = get_type_hints(trioboss.Boss.statistics)["return"]
    declaration = get_type_hints(trioboss.App.declaration)["return"]
    todo = [statistics, declaration, AnyTypedDict, Lease, Missed, QueueSettings, EmbeddedPostgres, Startable]
    found: list[type] = []
    while todo:
        kind = todo.pop(0)
        if kind not in found:
            found.append(kind)
            todo[:0] = _parts(kind) if attrs.has(kind) else []
    return [kind for kind in found if kind.__name__ not in trioboss.__all__]


def describe_types() -> str:
    """These classes, with their fields."""
    lines = ["```{eval-rst}"]
    for kind in find_types():
        lines += [f".. autoclass:: {kind.__module__}.{kind.__name__}()", "   :members:", "   :undoc-members:"]
        lines += [""]
    return "\n".join([*lines, "```"])


# -- names in the text of docstrings

_WRITTEN = {"app": "App", "boss": "Boss", "job": "RunningJob"}
"""Objects as programs call them: `boss.send` is a method of `Boss`."""


def resolve_name(name: str) -> str | None:
    """The full name of something public, from the way in which a docstring writes it; None if there is no such thing.

    Docstrings write `boss.send`, `job.extend` and `app.worker` as programs do, and `send` alone for a method of a boss.
    """
    owner, dot, member = name.rpartition(".")
    if not dot and name in trioboss.__all__:
        return f"trioboss.{name}"
    owner = _WRITTEN.get(owner, owner) if dot else "Boss"
    public = getattr(trioboss, owner) if owner in trioboss.__all__ else None
    is_field = dot and member in getattr(public, "__annotations__", {})
    return f"trioboss.{owner}.{member}" if is_field or member in methods_of(public) else None
