"""The commands that are one call on a boss."""

import argparse
import json
from difflib import get_close_matches
from typing import Any

import attrs

from trioboss.api.sync import SyncBoss
from trioboss.cli.opening import with_boss
from trioboss.cli.output import print_error, print_json, print_rows
from trioboss.cli.times import parse_instant
from trioboss.errors import UnknownQueue, UsageError
from trioboss.model.explanation import Reason
from trioboss.model.job import NewJob
from trioboss.model.texts import printable

__all__ = [
    "jobs",
    "parse_filters",
    "parse_json",
    "parse_options",
    "pause",
    "queues",
    "schedules",
    "send",
    "why",
]

_SEND_OPTIONS = [field.name for field in attrs.fields(NewJob) if field.name != "data"]
_TEXTS = ("id", "singleton_key", "dead_letter")
_QUEUE_COLUMNS = (
    *("queue", "policy", "ready", "blocked", "deferred", "active", "retries", "completed", "failed"),
    *("oldest_age", "paused"),
)


@with_boss
def send(boss: SyncBoss, args: argparse.Namespace) -> int:
    """Send one job."""
    id = boss.send(args.queue, parse_json("data", args.data), **parse_options(args.option))
    if id is None:
        print_error("not sent: refused by the policy of the queue, or by a throttle")
        return 1
    print(id)
    return 0


@with_boss
def queues(boss: SyncBoss, args: argparse.Namespace) -> int:
    """List the queues with the number of their jobs."""
    stats = boss.get_all_queue_stats()
    rows = [
        {"queue": queue.name, "policy": queue.policy.value, **attrs.asdict(stats[queue.name])}
        for queue in boss.get_queues()
        if queue.name in stats
    ]
    print_rows(rows, _QUEUE_COLUMNS, as_json=args.json)
    return 0


@with_boss
def jobs(boss: SyncBoss, args: argparse.Namespace) -> int:
    """List the jobs of a queue. Payloads are shown only on request."""
    filters = parse_filters(args) | {"limit": args.limit, "newest": args.newest, "after": args.after}
    found = boss.find_jobs(args.queue, **filters)
    if not found and boss.get_queue(args.queue) is None:
        raise UnknownQueue(args.queue)
    columns = [
        "id",
        "state",
        "priority",
        "attempt",
        "retry_count",
        "singleton_key",
        "created_on",
        "start_after",
    ]
    columns += ["data", "output"] if args.data else []
    print_rows([attrs.asdict(job, recurse=False) for job in found], columns, as_json=args.json)
    return 0


@with_boss
def why(boss: SyncBoss, args: argparse.Namespace) -> int:
    """Explain why a job is not running."""
    explanation = boss.why(args.queue, args.id)
    if explanation.reason is Reason.UNKNOWN:
        print_error(str(explanation))
        return 1
    print_json(attrs.asdict(explanation)) if args.json else print(printable(str(explanation)))
    return 0


@with_boss
def schedules(boss: SyncBoss, args: argparse.Namespace) -> int:
    """List the schedules."""
    rows = [attrs.asdict(schedule, recurse=False) for schedule in boss.get_schedules()]
    print_rows(rows, ("queue", "key", "cron", "timezone", "missed", "updated_on"), as_json=args.json)
    return 0


@with_boss
def pause(boss: SyncBoss, args: argparse.Namespace) -> int:
    """Pause or resume a queue."""
    boss.pause(args.queue) if args.command == "pause" else boss.resume_queue(args.queue)
    return 0


def parse_filters(args: argparse.Namespace) -> dict[str, Any]:
    """The filters that were given, as `find_jobs` takes them."""
    filters: dict[str, Any] = {"state": args.state, "singleton_key": args.key}
    for name in ("since", "until"):
        if (text := getattr(args, name)) is not None:
            try:
                filters[name] = parse_instant(name, text)
            except ValueError as error:
                raise UsageError(str(error)) from None
    return {name: value for name, value in filters.items() if value is not None}


def parse_json(field: str, text: str | None) -> Any:
    """The value of a JSON text."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"{field}: not JSON: {error}") from None
    except RecursionError:
        raise UsageError(f"{field}: nested too deeply") from None


def parse_options(given: list[str]) -> dict[str, Any]:
    """Parse `name=value`, where the value is JSON, or else text. Options that are text are never read as JSON."""
    options: dict[str, Any] = {}
    for option in given:
        name, equals, text = option.partition("=")
        if not equals:
            raise UsageError(f"option: {option!r} is not NAME=VALUE")
        if name not in _SEND_OPTIONS:
            near = get_close_matches(name, _SEND_OPTIONS, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise UsageError(f"option: unknown name {name!r}{hint}: use one of {', '.join(_SEND_OPTIONS)}")
        options[name] = _parse_value(name, text)
    return options


def _parse_value(name: str, text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    except RecursionError:
        raise UsageError(f"{name}: nested too deeply") from None
    return text if name in _TEXTS and not isinstance(value, str | None) else value
