"""The commands that are one call on a boss."""

import argparse
import json
from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from trioboss.api.boss import Boss
from trioboss.cli.output import print_error, print_json, print_rows, printable
from trioboss.errors import UnknownQueue, UsageError
from trioboss.model.explanation import Reason
from trioboss.model.job import NewJob, Settled
from trioboss.sql.plans import LATEST, migration_plans

__all__ = ["Command", "add_admin_commands", "migrate"]

_SEND_OPTIONS = [field.name for field in attrs.fields(NewJob) if field.name != "data"]
_TEXTS = ("id", "singleton_key", "dead_letter")

Command = Callable[[Boss, argparse.Namespace], Awaitable[int]]


async def send(boss: Boss, args: argparse.Namespace) -> int:
    """Send one job."""
    id = await boss.send(args.queue, _parse_json("data", args.data), **_parse_options(args.option))
    if id is None:
        print_error("not sent: refused by the policy of the queue, or by a throttle")
        return 1
    print(id)
    return 0


async def queues(boss: Boss, args: argparse.Namespace) -> int:
    """List the queues with the number of their jobs."""
    stats = await boss.get_all_queue_stats()
    rows = [
        {"queue": queue.name, "policy": queue.policy.value, **attrs.asdict(stats[queue.name])}
        for queue in await boss.get_queues()
        if queue.name in stats
    ]
    columns = (
        "queue",
        "policy",
        "ready",
        "deferred",
        "active",
        "retries",
        "completed",
        "failed",
        "oldest_age",
        "paused",
    )
    print_rows(rows, columns, as_json=args.json)
    return 0


async def jobs(boss: Boss, args: argparse.Namespace) -> int:
    """List the jobs of a queue. Payloads are shown only on request."""
    found = await boss.find_jobs(args.queue, state=args.state, limit=args.limit)
    if not found and await boss.get_queue(args.queue) is None:
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


async def why(boss: Boss, args: argparse.Namespace) -> int:
    """Explain why a job is not running."""
    explanation = await boss.why(args.queue, args.id)
    if explanation.reason is Reason.UNKNOWN:
        print_error(str(explanation))
        return 1
    print_json(attrs.asdict(explanation)) if args.json else print(printable(str(explanation)))
    return 0


async def schedules(boss: Boss, args: argparse.Namespace) -> int:
    """List the schedules."""
    rows = [attrs.asdict(schedule) for schedule in await boss.get_schedules()]
    print_rows(rows, ("queue", "key", "cron", "timezone", "missed", "updated_on"), as_json=args.json)
    return 0


async def pause(boss: Boss, args: argparse.Namespace) -> int:
    """Pause or resume a queue."""
    await (boss.pause(args.queue) if args.command == "pause" else boss.resume_queue(args.queue))
    return 0


async def settle(boss: Boss, args: argparse.Namespace) -> int:
    """Retry, cancel, resume or delete jobs."""
    methods = {"retry": boss.retry, "cancel": boss.cancel, "resume": boss.resume, "delete": boss.delete_job}
    settled: Settled = await methods[args.command](args.queue, args.id)
    print(f"{settled.affected} of {settled.requested}")
    return 0 if settled.affected == settled.requested else 1


async def migrate(boss: Boss, args: argparse.Namespace) -> int:
    """Create or update the schema: opening the boss has done that."""
    print(f"schema {boss.schema!r} is at version {await boss.schema_version()}")
    return 0


def print_plan(schema: str, version: int) -> int:
    """Print the SQL that a migration would execute."""
    if version >= LATEST:
        print(f"-- schema {schema!r} is at version {version}: nothing to do")
    else:
        print(migration_plans(schema, version))
    return 0


def _parse_json(field: str, text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"{field}: not JSON: {error}") from None
    except RecursionError:
        raise UsageError(f"{field}: nested too deeply") from None


def _parse_options(given: list[str]) -> dict[str, Any]:
    """Parse `name=value`, where the value is JSON, or else text. Options that are text are never read as JSON."""
    options: dict[str, Any] = {}
    for option in given:
        name, equals, text = option.partition("=")
        if not equals:
            raise UsageError(f"option: {option!r} is not NAME=VALUE")
        if name not in _SEND_OPTIONS:
            raise UsageError(f"option: unknown name {name!r}: use one of {', '.join(_SEND_OPTIONS)}")
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


def add_admin_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Describe the commands to the parser."""
    parser = add("send", "send a job", send)
    parser.add_argument("queue")
    parser.add_argument("data", nargs="?", metavar="JSON")
    parser.add_argument("--option", "-o", action="append", default=[], metavar="NAME=VALUE")
    add("queues", "list queues with the number of their jobs", queues, json=True)
    parser = add("jobs", "list jobs of a queue", jobs, json=True)
    parser.add_argument("queue")
    parser.add_argument("--state")
    parser.add_argument("--limit", type=int, default=50)
    parser.add_argument("--data", action="store_true", help="also show payloads and outputs")
    parser = add("why", "explain why a job is not running", why, json=True)
    parser.add_argument("queue")
    parser.add_argument("id")
    add("schedules", "list schedules", schedules, json=True)
    for name, text in (
        ("pause", "let no worker claim jobs of a queue"),
        ("unpause", "let workers claim jobs of a queue again"),
    ):
        add(name, text, pause).add_argument("queue")
    for name in ("retry", "cancel", "resume", "delete"):
        parser = add(name, f"{name} jobs", settle)
        parser.add_argument("queue")
        parser.add_argument("id", nargs="+")
    parser = add("migrate", "create or update the schema", migrate)
    parser.add_argument("--plan", action="store_true", help="print the SQL instead of executing it")
