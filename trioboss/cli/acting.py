"""Commands that act on jobs: retry, cancel, resume and delete by id or by a filter, redrive, and update-job."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import attrs

from trioboss.api.sync import SyncBoss
from trioboss.cli.admin import parse_filters, parse_json, parse_options
from trioboss.cli.opening import with_boss
from trioboss.cli.output import confirm, print_error, print_json
from trioboss.errors import JobNotFound, UnknownQueue, UsageError
from trioboss.model.texts import count

__all__ = ["act", "redrive", "update_job"]

_PAGE = 1000  # jobs that are read, and changed, at once
# The states in which jobs can be, for each command.
_STATES = {
    "retry": ("failed",),
    "resume": ("cancelled",),
    "cancel": ("created", "retry", "active"),
    "delete": ("created", "retry", "active", "completed", "cancelled", "failed"),
}
_DONE = {"retry": "retried", "resume": "resumed", "cancel": "cancelled", "delete": "deleted"}


@with_boss
def act(boss: SyncBoss, args: argparse.Namespace) -> int:
    """Retry, cancel, resume or delete jobs."""
    filters = parse_filters(args)
    if args.id:
        if filters or args.all:
            raise UsageError(f"{args.command}: give ids or a filter, not both")
        settled = _change(boss, args.command, args.queue, args.id)
        print(f"{settled} of {len(set(args.id))} {_DONE[args.command]}")
        return 0 if settled == len(set(args.id)) else 1
    if not filters and not args.all:
        raise UsageError(
            f"{args.command}: give ids, or a filter (--state, --key, --since, --until), or --all"
        )
    return _act_on_filter(boss, args, filters)


def _act_on_filter(boss: SyncBoss, args: argparse.Namespace, filters: dict[str, Any]) -> int:
    states = _STATES[args.command]
    if (state := filters.pop("state", None)) is not None:
        if state not in states:
            raise UsageError(
                f"state: {args.command} is for jobs that are {' or '.join(states)}, not {state!r}"
            )
        states = (state,)
    if boss.get_queue(args.queue) is None:
        raise UnknownQueue(args.queue)
    ids = _find_ids(boss, args.queue, states, filters, args.limit)
    what = f"{len(ids)} {'/'.join(states) if len(states) < 4 else 'matching'} jobs of queue {args.queue!r}"
    if args.dry_run or not ids:
        print(f"{what} match" if len(states) < 4 else f"{len(ids)} jobs of queue {args.queue!r} match")
        return 0 if ids or args.dry_run else 1
    if not confirm(f"{args.command} {what}", yes=args.yes):
        print_error("nothing was changed")
        return 1
    changed = 0
    for page in _pages(ids):
        try:
            changed += _change(boss, args.command, args.queue, page)
        except JobNotFound:
            continue  # others were faster
    print(f"{changed} of {len(ids)} {_DONE[args.command]}")
    return 0 if changed == len(ids) else 1


def _find_ids(
    boss: SyncBoss, queue: str, states: Sequence[str], filters: dict[str, Any], limit: int | None
) -> list[UUID]:
    ids: list[UUID] = []
    for state in states:
        page_filters = dict(filters)
        while limit is None or len(ids) < limit:
            size = _PAGE if limit is None else min(_PAGE, limit - len(ids))
            page = boss.find_jobs(queue, state=state, limit=size, **page_filters)
            ids += [job.id for job in page]
            if len(page) < size:
                break
            page_filters["after"] = page[-1].id
    return ids


def _pages(ids: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
    for start in range(0, len(ids), _PAGE):
        yield ids[start : start + _PAGE]


def _change(boss: SyncBoss, command: str, queue: str, ids: Sequence[Any]) -> int:
    methods = {"retry": boss.retry, "cancel": boss.cancel, "resume": boss.resume, "delete": boss.delete_job}
    return methods[command](queue, list(ids)).affected


@with_boss
def update_job(boss: SyncBoss, args: argparse.Namespace) -> int:
    """Change the data or the options of a queued job."""
    changes = parse_options(args.option)
    if args.data is not None:
        changes["data"] = parse_json("data", args.data)
    if not changes:
        raise UsageError("update-job: nothing is given to change: use --data or --option")
    try:
        boss.update_job(args.queue, args.id, **changes)
    except JobNotFound:
        job = boss.get_job_by_id(args.queue, args.id)
        if job is None or job.state != "failed":
            raise
        print_error(
            f"job {job.id} has failed, and only queued jobs can be changed: "
            f"trioboss pause {args.queue}; trioboss retry {args.queue} {job.id}; change it; "
            f"trioboss unpause {args.queue}"
        )
        return 1
    print(f"changed job {args.id}: {', '.join(sorted(changes))}")
    return 0


@with_boss
def redrive(boss: SyncBoss, args: argparse.Namespace) -> int:
    """Send the jobs of a dead letter queue back."""
    options = {"to": args.to, "source": args.source, "limit": args.limit, "force": args.force}
    preview = boss.redrive(args.queue, **options, dry_run=True)
    if args.dry_run or not preview.moved:
        _print_redriven(args, preview, "would be sent")
        return 0 if args.dry_run else 1
    targets = ", ".join(f"{number} to {name!r}" for name, number in preview.destinations.items())
    if not confirm(f"send {count(preview.moved, 'job')} of {args.queue!r} back ({targets})", yes=args.yes):
        print_error("nothing was changed")
        return 1
    _print_redriven(args, boss.redrive(args.queue, **options), "sent")
    return 0


def _print_redriven(args: argparse.Namespace, result: Any, how: str) -> None:
    if args.json:
        print_json(attrs.asdict(result))
        return
    for name, number in result.destinations.items():
        print(f"{count(number, 'job')} {how} to {name!r}")
    if not result.moved:
        print(f"no job of {args.queue!r} can be sent back")
    if result.unroutable:
        stay = count(result.unroutable, "job", "stays", "stay")
        print(f"{stay}: the queue is gone or needs a key (--to names another one)")
    if result.refused:
        print(f"{count(result.refused, 'job', 'stays', 'stay')}: the policy of the queue refused it")
    if result.duplicates:
        print(
            f"{count(result.duplicates, 'job', 'stays', 'stay')}: the failed job that it is a copy of blocks its key, "
            "was retried, or has completed since, and the work would be done twice; retry or delete a job that blocks "
            "its key (`trioboss blocked`), delete the copy of one that has completed, or add --force to send the copy"
        )
