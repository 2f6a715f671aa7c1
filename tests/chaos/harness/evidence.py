"""Makes a history of the journals and the database."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import attrs
import psycopg

from tests.chaos.harness.history import EndedAttempt, Fault, History, JobRow, Send, Settled, Start
from tests.chaos.harness.journal import Entry, read_journals
from tests.chaos.harness.plan import QUEUES, rules_of

__all__ = ["collect"]

# The columns are in the order of JobRow's and of EndedAttempt's fields.
_ROWS = """
    select id, name, singleton_key, state, attempt, extract(epoch from started_on)::float8,
           extract(epoch from completed_on)::float8, output ->> 'token', retry_limit,
           extract(epoch from expire_in)::float8, source_id
    from trioboss.all_jobs"""
_ENDED = """
    select job_id, queue, key, attempt, extract(epoch from started_on)::float8,
           extract(epoch from ended_on)::float8, outcome, error ->> 'message', worker::text
    from trioboss.attempt"""
_LEDGER = "select id from ledger order by pg_xact_commit_timestamp(xmin), line"

Entries = defaultdict[str, list[Entry]]


def collect(folder: Path, dsn: str, wall_ahead: float) -> History:
    """Return the history of a run. `wall_ahead`: seconds by which the wall clock is ahead of the monotonic one."""
    entries = _by_event(read_journals(folder))
    starts = _starts(entries, wall_ahead)
    history = History({name: rules_of(name) for name in QUEUES}, _sends(entries), starts, _settled(entries))
    history.faults = _faults(entries)
    with psycopg.connect(dsn) as connection:
        history.rows = [_row(values, wall_ahead) for values in connection.execute(_ROWS)]
        names = {entry["worker"]: entry["process"] for entry in entries["registered"]}
        names |= {f"{start.id}/{start.attempt}": start.process for start in starts}
        history.ended = [_ended(values, wall_ahead, names) for values in connection.execute(_ENDED)]
        history.ledger = [id for (id,) in connection.execute(_LEDGER)]
    return history


def _by_event(entries: Sequence[Entry]) -> Entries:
    found: Entries = defaultdict(list)
    for entry in entries:
        found[entry["event"]].append(entry)
    return found


def _sends(entries: Entries) -> list[Send]:
    answers = {entry["id"]: entry["answer"] for entry in entries["sent"]}
    return [
        Send(
            UUID(entry["id"]),
            entry["queue"],
            entry["key"],
            entry["at"],
            answers.get(entry["id"], "unknown"),
            entry["in_ledger"],
        )
        for entry in entries["send"]
    ]


def _starts(entries: Entries, wall_ahead: float) -> list[Start]:
    ends = {entry["token"]: entry["at"] for entry in entries["end"]}
    return [
        Start(
            UUID(entry["id"]),
            entry["attempt"],
            entry["leased_on"] - wall_ahead,
            entry["token"],
            entry["process"],
            entry["at"],
            ends.get(entry["token"]),
        )
        for entry in entries["start"]
    ]


def _settled(entries: Entries) -> list[Settled]:
    return [
        Settled(UUID(entry["id"]), entry["attempt"], entry["at"], entry["accepted"])
        for entry in entries["settled"]
    ]


def _faults(entries: Entries) -> list[Fault]:
    healed: dict[Any, Any] = {entry["number"]: entry["at"] for entry in entries["healed"]}
    return [
        Fault(entry["kind"], entry["at"], float(healed.get(entry["number"]) or entry["at"]), entry["target"])
        for entry in entries["fault"]
    ]


def _row(values: tuple[Any, ...], wall_ahead: float) -> JobRow:
    row = JobRow(*values)
    return attrs.evolve(
        row, leased_on=_less(row.leased_on, wall_ahead), ended_on=_less(row.ended_on, wall_ahead)
    )


def _less(at: float | None, wall_ahead: float) -> float | None:
    return None if at is None else at - wall_ahead


def _ended(values: tuple[Any, ...], wall_ahead: float, names: dict[str, str]) -> EndedAttempt:
    end = EndedAttempt(*values)
    # A manual worker is not registered in the database, but its journal has the attempt.
    process = names.get(f"{end.id}/{end.attempt}") or names.get(end.worker or "")
    return attrs.evolve(
        end, leased_on=end.leased_on - wall_ahead, ended_on=end.ended_on - wall_ahead, worker=process
    )
