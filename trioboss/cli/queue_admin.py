"""The commands that create, change and delete queues and schedules."""

import argparse

from trioboss.api.sync import SyncBoss
from trioboss.cli.admin import parse_json, parse_options
from trioboss.cli.opening import with_boss
from trioboss.cli.output import confirm, print_error
from trioboss.cli.queue_options import given_options
from trioboss.errors import UnknownQueue, UsageError
from trioboss.model.texts import count

__all__ = ["create_queue", "delete_queue", "schedule", "unschedule", "update_queue"]


@with_boss
def create_queue(boss: SyncBoss, args: argparse.Namespace) -> int:
    """Create a queue; the same again does nothing."""
    existed = boss.get_queue(args.name) is not None
    boss.create_queue(args.name, **given_options(args))  # type: ignore[arg-type]
    print(f"queue {args.name!r} exists" if existed else f"created queue {args.name!r}")
    return 0


@with_boss
def update_queue(boss: SyncBoss, args: argparse.Namespace) -> int:
    """Change options of a queue."""
    options = given_options(args)
    if not options:
        raise UsageError("update-queue: no option is given: see `trioboss update-queue -h`")
    boss.update_queue(args.name, **options)  # type: ignore[arg-type]
    print(f"changed queue {args.name!r}: {', '.join(f'{name} = {value}' for name, value in options.items())}")
    return 0


@with_boss
def delete_queue(boss: SyncBoss, args: argparse.Namespace) -> int:
    """Delete a queue with its live jobs, after asking if there are any."""
    if boss.get_queue(args.name) is None:
        raise UnknownQueue(args.name)
    stats = boss.get_queue_stats(args.name)
    live = stats.queued + stats.active
    if live and not confirm(
        f"delete queue {args.name!r} with {stats.queued} queued and {stats.active} active jobs", yes=args.yes
    ):
        print_error("nothing was deleted")
        return 1
    boss.delete_queue(args.name)
    print(f"deleted queue {args.name!r}" + (f" with {count(live, 'job')}" if live else ""))
    return 0


@with_boss
def schedule(boss: SyncBoss, args: argparse.Namespace) -> int:
    """Create or replace a schedule."""
    data, options = parse_json("data", args.data), parse_options(args.option)
    boss.schedule(args.queue, args.cron, data, tz=args.tz, key=args.key, missed=args.missed, **options)
    print(f"scheduled {args.queue!r}{_key(args.key)}: {args.cron} ({args.tz})")
    return 0


@with_boss
def unschedule(boss: SyncBoss, args: argparse.Namespace) -> int:
    """Remove a schedule."""
    if args.key not in {found.key for found in boss.get_schedules(args.queue)}:
        print_error(f"queue {args.queue!r} has no schedule{_key(args.key)}")
        return 1
    boss.unschedule(args.queue, args.key)
    print(f"removed the schedule of {args.queue!r}{_key(args.key)}")
    return 0


def _key(key: str) -> str:
    return f" with key {key!r}" if key else ""
