"""Makes a history of the journals and the database."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import attrs
import psycopg

from tests.chaos.harness.explaining import TICK
from tests.chaos.harness.history import (
    Change,
    EndedAttempt,
    Exit,
    Fault,
    History,
    JobRow,
    Memory,
    Send,
    Settled,
    Start,
    Tick,
)
from tests.chaos.harness.journal import Entry, entries_of
from tests.chaos.harness.queues import CRON, QUEUES, rules_of
from tests.chaos.harness.worker_process import OTHER_VERSION

__all__ = ["KEEP_TICKS", "collect"]

# The columns are in the order of JobRow's and of EndedAttempt's fields. Jobs with strange values are the nemesis's own.
_ROWS = """
    select id, name, singleton_key, state, attempt, extract(epoch from started_on)::float8,
           extract(epoch from completed_on)::float8, output ->> 'token', retry_limit,
           extract(epoch from expire_in)::float8, source_id
    from trioboss.all_jobs where not coalesce(data ? 'strange', false)"""
_ENDED = """
    select job_id, queue, key, attempt, extract(epoch from started_on)::float8,
           extract(epoch from ended_on)::float8, outcome, error ->> 'message', worker::text
    from trioboss.attempt
    where job_id not in (select id from trioboss.all_jobs where data ? 'strange')"""
KEEP_TICKS = """
    lock table trioboss.tick in share mode;
    create table kept_tick as select * from trioboss.tick"""
_TICKS = "select job_id, extract(epoch from due)::float8 from kept_tick where queue = %s order by due"
_LEDGER = "select id from ledger order by pg_xact_commit_timestamp(xmin), line"


def collect(folder: Path, dsn: str, wall_ahead: float) -> History:
    """Return the history of a run. `wall_ahead`: seconds by which the wall clock is ahead of the monotonic one."""
    reader = _Reader(wall_ahead)
    for entry in entries_of(folder):
        reader.read(entry)
    history = reader.make_history()
    with psycopg.connect(dsn) as connection:
        history.rows = [_row(values, wall_ahead) for values in connection.execute(_ROWS)]
        owners = _Owners.of(history.starts, reader.workers)
        history.ended = [
            _ended(values, wall_ahead, owners)
            for values in connection.execute(_ENDED)
            if values[0] not in reader.strange
        ]
        history.ledger = [id for (id,) in connection.execute(_LEDGER)]
        history.ticks = [Tick(id, due - wall_ahead) for id, due in connection.execute(_TICKS, [CRON])]
    return history


@attrs.define
class _Reader:
    """Takes the entries of all journals, in any order: a long run has millions, so none is kept."""

    wall_ahead: float
    sends: list[Send] = attrs.field(factory=list)
    answers: dict[UUID, tuple[str, float]] = attrs.field(factory=dict)
    starts: list[Start] = attrs.field(factory=list)
    ends: dict[str, float] = attrs.field(factory=dict)
    faults: list[tuple[Any, Fault]] = attrs.field(factory=list)
    healed: dict[Any, float] = attrs.field(factory=dict)
    workers: dict[str, str] = attrs.field(factory=dict)
    """The processes of workers, by the ids in the database."""
    strange: set[UUID] = attrs.field(factory=set)
    """The jobs of the nemesis itself, also those that retention has deleted."""
    history: History = attrs.field(factory=History)

    def read(self, entry: Entry) -> None:
        """Take one entry. Kinds without a method here are for people who read a journal."""
        if (take := getattr(self, f"_{entry['event']}", None)) is not None:
            take(entry)

    def make_history(self) -> History:
        """Return the part of the history that the journals have."""
        found = self.history
        found.wall_ahead = self.wall_ahead
        found.queues = {name: rules_of(name) for name in QUEUES}
        unknown = ("unknown", None)
        for place, send in enumerate(self.sends):
            answer, answered = self.answers.get(send.id, unknown)
            self.sends[place] = attrs.evolve(send, answer=answer, answered=answered)
        for place, start in enumerate(self.starts):
            self.starts[place] = attrs.evolve(start, ended=self.ends.get(start.token))
        found.sends, found.starts = self.sends, self.starts
        found.sends.sort(key=lambda send: send.invoked)
        found.starts.sort(key=lambda start: start.at)
        found.memory.sort(key=lambda memory: memory.at)
        found.faults = [
            attrs.evolve(fault, until=self.healed.get(number, fault.at)) for number, fault in self.faults
        ]
        return found

    def _send(self, entry: Entry) -> None:
        self.sends.append(
            Send(
                UUID(entry["id"]),
                entry["queue"],
                entry["key"],
                entry["at"],
                "unknown",
                entry["in_ledger"],
                None,
                entry["method"],
                entry["after"],
                entry["priority"],
                entry["slot"],
                entry["checksum"],
            )
        )

    def _sent(self, entry: Entry) -> None:
        self.answers[UUID(entry["id"])] = (entry["answer"], entry["at"])

    def _change(self, entry: Entry) -> None:
        self.history.changes.append(
            Change(UUID(entry["id"]), entry["kind"], entry["invoked"], entry["at"], entry["answer"])
        )

    def _started(self, entry: Entry) -> None:
        self.history.other_versions += OTHER_VERSION in entry.get("package", "")

    def _strange(self, entry: Entry) -> None:
        self.strange.add(UUID(entry["id"]))

    def _registered(self, entry: Entry) -> None:
        self.workers[entry["worker"]] = entry["process"]

    def _start(self, entry: Entry) -> None:
        leased_on = entry["leased_on"] - self.wall_ahead
        self.starts.append(
            Start(
                UUID(entry["id"]),
                entry["attempt"],
                leased_on,
                entry["token"],
                entry["process"],
                entry["at"],
                None,
                entry["checksum"],
            )
        )

    def _end(self, entry: Entry) -> None:
        self.ends[entry["token"]] = entry["at"]

    def _settled(self, entry: Entry) -> None:
        self.history.settled.append(
            Settled(UUID(entry["id"]), entry["attempt"], entry["at"], entry["accepted"])
        )

    def _fault(self, entry: Entry) -> None:
        fault = Fault(entry["kind"], entry["at"], entry["at"], entry["target"])
        self.faults.append((entry["number"], fault))

    def _healed(self, entry: Entry) -> None:
        self.healed[entry["number"]] = entry["at"]

    def _exit(self, entry: Entry) -> None:
        self.history.exits.append(Exit(entry["name"], entry["at"], entry["code"]))

    def _memory(self, entry: Entry) -> None:
        self.history.memory.append(Memory(entry["name"], entry["at"], entry["megabytes"]))


def _row(values: tuple[Any, ...], wall_ahead: float) -> JobRow:
    row = JobRow(*values)
    return attrs.evolve(
        row, leased_on=_less(row.leased_on, wall_ahead), ended_on=_less(row.ended_on, wall_ahead)
    )


def _less(at: float | None, wall_ahead: float) -> float | None:
    return None if at is None else at - wall_ahead


@attrs.frozen
class _Owners:
    """Which process had a lease."""

    calls: dict[tuple[UUID, int], list[Start]]
    """A crash of the server may undo a claim, and its number is issued again."""
    workers: dict[str, str]

    @classmethod
    def of(cls, starts: Sequence[Start], workers: dict[str, str]) -> "_Owners":
        calls: defaultdict[tuple[UUID, int], list[Start]] = defaultdict(list)
        for start in starts:
            calls[start.id, start.attempt].append(start)
        return cls(calls, workers)

    def find(self, end: EndedAttempt) -> str | None:
        """Return the process by its journal. A manual worker is not registered in the database."""
        for start in self.calls.get((end.id, end.attempt), []):
            if abs(start.leased_on - end.leased_on) < TICK:
                return start.process
        return self.workers.get(end.worker or "")


def _ended(values: tuple[Any, ...], wall_ahead: float, owners: _Owners) -> EndedAttempt:
    end = EndedAttempt(*values)
    end = attrs.evolve(end, leased_on=end.leased_on - wall_ahead, ended_on=end.ended_on - wall_ahead)
    return attrs.evolve(end, worker=owners.find(end))
