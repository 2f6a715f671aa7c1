"""Sends the planned jobs through a bad network. Each job has an id from the plan, so sending it again is safe."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import attrs
import psycopg

import trioboss
from benchmarks.programs.protocol import emit, handle_commands, read_spec
from tests.chaos.harness.journal import Journal
from tests.chaos.harness.plan import Plan, PlannedSend, checksum

__all__ = ["LEDGER", "Producer", "open_boss"]

# Lines are never updated, so the commit timestamp of a line's transaction gives the order of commits.
LEDGER = "create table ledger (id uuid not null, line bigint generated always as identity)"
_ENTER = "insert into ledger (id) values (%s)"
_OLD_SNAPSHOT = "set transaction isolation level repeatable read; select"
_LOST = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.IdleInTransactionSessionTimeout,
)
_RETRY_DELAY = 0.05  # seconds between two tries


class _RollBack(Exception):
    """Raised to roll back a transaction."""


@attrs.define(eq=False)
class Producer:
    """One of several producers."""

    boss: trioboss.SyncBoss
    journal: Journal

    def send(self, planned: PlannedSend) -> None:
        """Send a job, and record the answer."""
        in_ledger = planned.mode in ("transaction", "repeatable", "rollback")
        self.journal.write(
            "send",
            id=planned.id,
            queue=planned.queue,
            key=planned.key,
            in_ledger=in_ledger,
            method=planned.method,
            after=planned.options.get("start_after", 0.0),
            priority=planned.options.get("priority", 0),
            slot=planned.slot,
            checksum=checksum(planned.data),
        )
        answer = self._send_in_transaction(planned) if in_ledger else self._send_plainly(planned)
        self.journal.write("sent", id=planned.id, answer=answer)
        if answer == "ok":
            for change in planned.changes:
                time.sleep(planned.pause)
                self._change(planned, change)

    def _change(self, planned: PlannedSend, change: str) -> None:
        """Cancel or resume a job, once, and record the answer."""
        invoked = time.monotonic()
        try:
            getattr(self.boss, change)(planned.queue, planned.id)
            answer = "ok"
        except trioboss.JobNotFound:
            answer = "refused"
        except trioboss.DatabaseUnavailable:
            answer = "unknown"
        self.journal.write("change", id=planned.id, kind=change, invoked=invoked, answer=answer)

    def _send_plainly(self, planned: PlannedSend) -> str:
        outcome_unknown = False
        while True:
            try:
                sent = self._send(planned)
            except trioboss.DatabaseUnavailable:
                if planned.mode == "forget":
                    return "unknown"
                outcome_unknown = True
                time.sleep(_RETRY_DELAY)
            else:
                # An earlier try may still be executing: that this one is refused proves nothing about that one.
                return "ok" if sent else "unknown" if outcome_unknown else "refused"

    def _send_in_transaction(self, planned: PlannedSend) -> str:
        """Send once, without a second try: the ledger must have one line for each job."""
        sent = committing = False
        try:
            with self.boss.transaction() as conn:
                if planned.mode == "repeatable":
                    conn.execute(_OLD_SNAPSHOT)
                    time.sleep(planned.pause)
                conn.execute(_ENTER, [planned.id])
                sent = self._send(planned, conn=conn)
                time.sleep(planned.pause)
                if planned.mode == "rollback":
                    raise _RollBack
                committing = True
        except _RollBack:
            return "rolled_back"
        except (trioboss.DatabaseUnavailable, *_LOST):
            return ("unknown" if sent else "refused") if committing else "rolled_back"
        return "ok" if sent else "refused"

    def _send(self, planned: PlannedSend, **conn: Any) -> bool:
        queue, data, key = planned.queue, planned.data, planned.key
        options = {"id": planned.id, **planned.options, **conn}
        if planned.method == "send_once":
            id = self.boss.send_once(queue, data, str(key), **options)
        elif planned.method == "send_singleton":
            id = self.boss.send_singleton(queue, data, singleton_key=key, **options)
        elif planned.slot is not None:
            id = self.boss.send_throttled(queue, data, planned.slot, key, **options)
        else:
            id = self.boss.send(queue, data, singleton_key=key, **options)
        return id is not None


def main() -> None:
    """Send everything, spread over the time of the plan."""
    spec = read_spec()
    handle_commands(lambda command: None)
    plan = Plan(**spec["plan"])
    journal = Journal(spec["folder"], f"producer-{spec['number']}")
    number = len(range(spec["number"], plan.jobs, plan.producers))
    began = time.monotonic()
    with open_boss(spec["dsn"]) as boss:
        producer = Producer(boss, journal)
        emit("ready")
        # One at a time: the jobs of a long run have gigabytes of data.
        for place, planned in enumerate(plan.sends(spec["number"])):
            due = began + plan.seconds * place / number
            time.sleep(max(0.0, due - time.monotonic()))
            producer.send(planned)
    emit("done")


@contextmanager
def open_boss(dsn: str) -> Iterator[trioboss.SyncBoss]:
    """Open a boss, and try again while the database is unavailable."""
    with ExitStack() as stack:
        while True:
            try:
                boss = stack.enter_context(trioboss.SyncBoss(dsn, migrate=False))
                break
            except trioboss.DatabaseUnavailable:
                time.sleep(_RETRY_DELAY)
        yield boss


if __name__ == "__main__":
    main()
