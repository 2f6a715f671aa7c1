"""`trioboss show`, `trioboss blocked` and `trioboss workers`."""

import argparse
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import attrs

from trioboss.api.observing import get_attempts, get_backlog, get_workers, list_blocked
from trioboss.api.sync import SyncBoss
from trioboss.cli.opening import with_boss
from trioboss.cli.output import print_json, print_rows, show_value
from trioboss.cli.times import show_ago
from trioboss.errors import JobNotFound, UnknownQueue
from trioboss.model.check import check_uuid
from trioboss.model.described_error import described_line
from trioboss.model.job import Job
from trioboss.model.observation import Attempt, BlockedBacklog
from trioboss.model.policy import Policy
from trioboss.model.texts import printable, printable_stack, show_seconds

__all__ = ["blocked", "show", "workers"]

_BACKLOG = 20  # jobs of a key that are shown
_MOST_WAITING = 10_000  # jobs behind a key that list_blocked_keys.sql counts
_COLUMNS = ("queue", "name", "present", "running", "age", "pooled", "seen_on", "id")


@with_boss
def workers(boss: SyncBoss, args: argparse.Namespace) -> int:
    """List the workers."""
    now = datetime.now(UTC)
    rows = [
        attrs.asdict(worker) | {"age": (now - worker.started_on).total_seconds()}
        for worker in get_workers(boss)
    ]
    print_rows(rows, _COLUMNS, as_json=args.json)
    return 0


@with_boss
def blocked(boss: SyncBoss, args: argparse.Namespace) -> int:
    """List the keys of strict FIFO queues that a failed job blocks, with the commands that unblock them."""
    found = list_blocked(boss, args.queue, args.limit)
    if args.json:
        print_json([attrs.asdict(each) for each in found])
        return 0
    if not found:
        print("no key is blocked")
        return 0
    now = datetime.now(UTC)
    print_rows([_blocked_row(each, now) for each in found], _BLOCKED_COLUMNS, as_json=False)
    first = found[0]
    which = "a key" if len(found) == 1 else "the first of these keys, and the others in the same way"
    print(f"to unblock {which}, look at its failed job, and then run the job again, or give it up:")
    print(f"  trioboss show {first.queue} {first.id}")
    print(f"  trioboss retry {first.queue} {first.id}     # one more attempt")
    print(f"  trioboss delete {first.queue} {first.id}    # the next job of the key runs without it")
    if sum(each.queue == first.queue for each in found) > 1:
        print(f"  trioboss retry {first.queue} --state failed    # one more attempt of each")
    return 0


_BLOCKED_COLUMNS = ("queue", "key", "failed job", "blocked for", "waiting", "error")


def _blocked_row(each: BlockedBacklog, now: datetime) -> dict[str, Any]:
    return {
        "queue": each.queue,
        "key": each.key,
        "failed job": each.id,
        "blocked for": None if each.since is None else show_ago(each.since, now),
        "waiting": f"{each.waiting}{'+' if each.waiting >= _MOST_WAITING else ''}",
        "error": printable(described_line(each.error))[:80] or None,
    }


@with_boss
def show(boss: SyncBoss, args: argparse.Namespace) -> int:
    """Show everything about one job. The payload only on request."""
    job = boss.get_job_by_id(args.queue, args.id)
    if job is None:
        raise JobNotFound(args.queue, [check_uuid("id", args.id)], "such")
    found = _collect(boss, job)
    if not args.data:
        found["job"] |= {"data": "…", "output": "…"}
    if args.json:
        print_json(found)
        return 0
    for line in _describe(job, found):
        print(line)
    return 0


def _collect(boss: SyncBoss, job: Job) -> dict[str, Any]:
    attempts = get_attempts(boss, job.queue, job.id)
    queue = boss.get_queue(job.queue)
    keyed = queue is not None and queue.policy.is_keyed
    backlog = get_backlog(boss, job.queue, job.singleton_key or "", _BACKLOG) if keyed else []
    dead_letters: list[Job] = []
    if job.dead_letter:
        with suppress(UnknownQueue):  # it was deleted since
            dead_letters = boss.find_jobs(job.dead_letter, source_id=job.id)
    # A failed job has ended; under strict FIFO it may still block its key, and others have to know why they wait.
    strict = queue is not None and queue.policy is Policy.KEY_STRICT_FIFO and job.state == "failed"
    explained = queue is not None and (strict or not job.state.is_ended)
    used = {job.worker, *(each.worker for each in attempts)}
    workers = {str(each.id): each.name for each in get_workers(boss) if each.id in used}
    return {
        "job": attrs.asdict(job, recurse=False),
        "workers": workers,
        "why": str(boss.why(job.queue, job.id)) if explained else None,
        "attempts": [attrs.asdict(attempt) for attempt in attempts],
        "backlog": [attrs.asdict(each) for each in backlog],
        "dead_letter_jobs": [
            {"queue": each.queue, "id": each.id, "state": each.state} for each in dead_letters
        ],
    }


def _describe(job: Job, found: dict[str, Any]) -> Iterator[str]:
    now = datetime.now(UTC)
    yield f"{job.queue} {job.id}"
    yield f"  state        {job.state}" + (f" ({job.readiness})" if job.state.is_queued else "")
    if found["why"]:
        yield f"  why          {printable(found['why'])}"
    yield f"  attempt      {job.attempt}, {job.retry_count} of {job.retry_limit} retries spent"
    yield f"  priority     {job.priority}"
    if job.singleton_key is not None:
        yield f"  key          {printable(job.singleton_key)}"
    for name in ("created_on", "start_after", "started_on", "completed_on"):
        if (instant := getattr(job, name)) is not None:
            relation = f"{show_ago(instant, now)} ago" if instant <= now else f"in {show_ago(now, instant)}"
            yield f"  {name:<12} {show_value(instant)} UTC, {relation}"
    yield f"  expires      {show_seconds(job.expire_in)} after its start" + (
        f", heartbeat {show_seconds(job.heartbeat)}" if job.heartbeat else ""
    )
    if job.worker is not None:
        yield f"  worker       {_name_worker(job.worker, found)}"
    if job.progress is not None:
        yield f"  progress     {show_value(job.progress, 'data')}"
    if job.source_id is not None:
        yield f"  source       {job.source_queue} {job.source_id}"
    yield f"  dead letter  {job.dead_letter or '-'}" + "".join(
        f", {each['id']} ({each['state']})" for each in found["dead_letter_jobs"]
    )
    if found["job"]["data"] != "…":
        yield f"  data         {show_value(job.data, 'data')}"
        yield f"  output       {show_value(job.output, 'output')}"
    yield from _describe_backlog(job, found["backlog"])
    yield from _describe_attempts([Attempt(**each) for each in found["attempts"]], found)


def _name_worker(id: UUID | None, found: dict[str, Any]) -> str:
    """The name of a worker and its id; only the id of one that has stopped."""
    name = found["workers"].get(str(id))
    return f"{printable(name)} ({id})" if name else str(id or "-")


def _describe_backlog(job: Job, backlog: list[dict[str, Any]]) -> Iterator[str]:
    if backlog:
        yield f"the backlog of its key, at most {_BACKLOG} jobs:"
    for number, each in enumerate(backlog):
        own = " ← this job" if each["id"] == job.id else ""
        state = "failed, blocks the key" if each["readiness"] == "ended" else each["readiness"]
        yield f"  {number + 1:>3} {each['id']} {state}{own}"


def _describe_attempts(attempts: list[Attempt], found: dict[str, Any]) -> Iterator[str]:
    if attempts:
        yield "attempts that did not end well:"
    for each in attempts:
        ran = show_seconds((each.ended_on - each.started_on).total_seconds())
        when = f"{show_value(each.ended_on)} UTC, after {ran}"
        yield f"  {each.attempt:>3} {each.outcome} {when}, worker {_name_worker(each.worker, found)}"
        error = each.error if isinstance(each.error, dict) else {"message": each.error}
        text = error.get("stack") or error.get("message")
        if text:
            yield from (f"      {line}" for line in printable_stack(str(text).rstrip()).splitlines())
