"""The public names of trioboss, by subject, as directives of autodoc."""

import inspect
from collections.abc import Iterable, Iterator

import trioboss
from docs.pages.docstrings import module_texts

__all__ = [
    "SUBJECTS",
    "describe_aliases",
    "describe_boss",
    "describe_sync_boss",
    "find_aliases",
    "methods_of",
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


def find_aliases() -> list[str]:
    """Names of types: autodoc finds no text for them, because they are imported when they are first used."""
    return [name for name in sorted(trioboss.__all__) if name != "__version__" and _is_alias(name)]


def _is_alias(name: str) -> bool:
    thing = getattr(trioboss, name)
    return not (inspect.isclass(thing) or inspect.isroutine(thing))


def methods_of(owner: type) -> list[str]:
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
    for name in find_aliases():
        module = trioboss._HOMES[name]
        text = module_texts(__import__(f"trioboss.{module}", fromlist=[name]))[name]
        lines += [
            f".. py:data:: trioboss.{name}",
            "",
            *(f"   {line}".rstrip() for line in text.splitlines()),
            "",
        ]
    return "\n".join([*lines, "```"])
