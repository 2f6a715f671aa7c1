"""From journals and database to a history."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import attrs
import psycopg

from benchmarks.chaos.history import Ended, Fault, History, Row, Send, Settled, Start
from benchmarks.chaos.journal import Entry, read_journals
from benchmarks.chaos.plan import QUEUES, rules_of

__all__ = ["collect"]

_ROWS = """
    select id, name, singleton_key, state::text, attempt, extract(epoch from started_on)::float8,
           extract(epoch from completed_on)::float8, output ->> 'token', retry_limit,
           extract(epoch from expire_in)::float8, source_id
    from trioboss.all_jobs"""
_ENDED = """
    select job_id, name, singleton_key, attempt, extract(epoch from started_on)::float8,
           extract(epoch from ended_on)::float8, outcome, error ->> 'message', worker::text
    from trioboss.attempt"""
_LEDGER = "select id from ledger order by pg_xact_commit_timestamp(xmin), line"


def collect(folder: Path, dsn: str, wall_ahead: float) -> History:
    """The history of a run. `wall_ahead`: seconds by which the wall clock is ahead of the monotonic one."""
    entries = by_kind(read_journals(folder))
    starts = _starts(entries, wall_ahead)
    history = History({name: rules_of(name) for name in QUEUES}, _sends(entries), starts, _settled(entries))
    history.faults = _faults(entries)
    with psycopg.connect(dsn) as connection:
        history.rows = [_row(values, wall_ahead) for values in connection.execute(_ROWS)]
        names = {entry["worker"]: entry["who"] for entry in entries["registered"]}
        names |= {f"{start.id}/{start.attempt}": start.who for start in starts}
        history.ended = [_ended(values, wall_ahead, names) for values in connection.execute(_ENDED)]
        history.ledger = [id for (id,) in connection.execute(_LEDGER)]
    return history


def by_kind(entries: Sequence[Entry]) -> defaultdict[str, list[Entry]]:
    """Entries by what they tell of."""
    sorted_out: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        sorted_out[entry["what"]].append(entry)
    return sorted_out


def _sends(entries: defaultdict[str, list[Entry]]) -> list[Send]:
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


def _starts(entries: defaultdict[str, list[Entry]], wall_ahead: float) -> list[Start]:
    ends = {entry["token"]: entry["at"] for entry in entries["end"]}
    return [
        Start(
            UUID(entry["id"]),
            entry["attempt"],
            entry["leased_on"] - wall_ahead,
            entry["token"],
            entry["who"],
            entry["at"],
            ends.get(entry["token"]),
        )
        for entry in entries["start"]
    ]


def _settled(entries: defaultdict[str, list[Entry]]) -> list[Settled]:
    return [
        Settled(UUID(entry["id"]), entry["attempt"], entry["at"], entry["accepted"])
        for entry in entries["settled"]
    ]


def _faults(entries: defaultdict[str, list[Entry]]) -> list[Fault]:
    healed: dict[Any, Any] = {entry["number"]: entry["at"] for entry in entries["healed"]}
    return [
        Fault(entry["kind"], entry["at"], float(healed.get(entry["number"]) or entry["at"]), entry["target"])
        for entry in entries["fault"]
    ]


def _row(values: tuple[Any, ...], wall_ahead: float) -> Row:
    row = Row(*values)
    return attrs.evolve(
        row, leased_on=_less(row.leased_on, wall_ahead), ended_on=_less(row.ended_on, wall_ahead)
    )


def _less(at: float | None, wall_ahead: float) -> float | None:
    return None if at is None else at - wall_ahead


def _ended(values: tuple[Any, ...], wall_ahead: float, names: dict[str, str]) -> Ended:
    end = Ended(*values)
    # Whoever fetches by hand has no number, but has written down what it runs.
    who = names.get(f"{end.id}/{end.attempt}") or names.get(end.worker or "")
    return attrs.evolve(
        end, leased_on=end.leased_on - wall_ahead, ended_on=end.ended_on - wall_ahead, worker=who
    )
