"""Sends what the plan says, through a bad network. An id of its own makes it safe to ask again."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import attrs
import psycopg

import trioboss
from benchmarks.chaos.journal import Journal
from benchmarks.chaos.plan import Order, Plan
from benchmarks.programs.link import emit, follow, read_spec

__all__ = ["LEDGER", "Producer", "open_boss"]

# Lines that are never changed: their transactions tell the order of commits.
LEDGER = "create table ledger (id uuid not null, line bigint generated always as identity)"
_ENTER = "insert into ledger (id) values (%s)"
_BREATH = 0.05  # seconds between two tries


class _Undo(Exception):
    """Raised to roll back."""


@attrs.define(eq=False)
class Producer:
    """One of several."""

    boss: trioboss.SyncBoss
    journal: Journal

    def send(self, order: Order) -> None:
        """Send a job, and write down what came of it."""
        in_ledger = order.way in ("transaction", "rollback")
        self.journal.write("send", id=order.id, queue=order.queue, key=order.key, in_ledger=in_ledger)
        answer = self._send_in_transaction(order) if in_ledger else self._send_plainly(order)
        self.journal.write("sent", id=order.id, answer=answer)

    def _send_plainly(self, order: Order) -> str:
        unsure = False
        while True:
            try:
                sent = self._send(order)
            except trioboss.DatabaseUnavailable:
                if order.way == "forget":
                    return "unknown"
                unsure = True
                time.sleep(_BREATH)
            except psycopg.errors.DeadlockDetected:
                time.sleep(_BREATH)  # with the nemesis, who locks tables: nothing was sent
            else:
                # What was sent before may still be on its way: a refusal of the second says nothing of the first.
                return "ok" if sent else "unknown" if unsure else "refused"

    def _send_in_transaction(self, order: Order) -> str:
        """Never again: the ledger must have one line for each job."""
        sent = committing = False
        try:
            with self.boss.transaction() as conn:
                conn.execute(_ENTER, [order.id])
                sent = self._send(order, conn=conn)
                time.sleep(order.pause)
                if order.way == "rollback":
                    raise _Undo
                committing = True
        except _Undo:
            return "undone"
        except (trioboss.DatabaseUnavailable, psycopg.OperationalError, psycopg.InterfaceError):
            return ("unknown" if sent else "refused") if committing else "undone"
        return "ok" if sent else "refused"

    def _send(self, order: Order, **conn: Any) -> bool:
        id = self.boss.send(
            order.queue, order.data, id=order.id, singleton_key=order.key, **order.options, **conn
        )
        return id is not None


def main() -> None:
    """Send everything, spread over the time there is."""
    spec = read_spec()
    follow(lambda command: None)
    plan = Plan(**spec["plan"])
    journal = Journal(spec["folder"], f"producer-{spec['number']}")
    orders = list(plan.orders(spec["number"]))
    began = time.monotonic()
    with open_boss(spec["dsn"]) as boss:
        producer = Producer(boss, journal)
        emit("ready")
        for place, order in enumerate(orders):
            due = began + plan.seconds * place / len(orders)
            time.sleep(max(0.0, due - time.monotonic()))
            producer.send(order)
    emit("done")


@contextmanager
def open_boss(dsn: str) -> Iterator[trioboss.SyncBoss]:
    """A boss; where there is no database just now, it is waited for."""
    with ExitStack() as stack:
        while True:
            try:
                boss = stack.enter_context(trioboss.SyncBoss(dsn, migrate=False))
                break
            except trioboss.DatabaseUnavailable:
                time.sleep(_BREATH)
        yield boss


if __name__ == "__main__":
    main()
