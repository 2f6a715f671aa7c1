"""Operations on leases that are held: heartbeats, extensions, progress."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import attrs

from trioboss.errors import LeaseLost, UnknownQueue, UsageError
from trioboss.model.answers import Settled
from trioboss.model.check import check_duration
from trioboss.model.job import Lease
from trioboss.model.payload import JsonInput, encode
from trioboss.model.queue import Queue
from trioboss.postgres import BoundStatement
from trioboss.postgres.errors import is_table_gone
from trioboss.postgres.operation import Batch, Operation
from trioboss.postgres.wire import read_rows
from trioboss.store.context import Context, lease_arrays, text_array, uuid_array
from trioboss.store.rows import read_first
from trioboss.store.targets import Targets, parse_targets

__all__ = ["LeaseOperations"]


@attrs.frozen
class LeaseOperations:
    """Renew, check and extend leases."""

    _context: Context

    def renew(self, leases: Mapping[str, Sequence[Lease]]) -> Operation[dict[UUID, bool]]:
        """Renew leases, given by queue. Return the ids of those still held, and whether each was renewed: not if an
        open transaction has locked its row.
        """
        return {row[0]: row[1] for row in (yield from self._on_leases("renew", leases))}

    def check(self, leases: Mapping[str, Sequence[Lease]]) -> Operation[set[UUID]]:
        """The ids of those leases, given by queue, that are still held."""
        return {row[0] for row in (yield from self._on_leases("check_leases", leases))}

    def _on_leases(
        self, statement: str, leases: Mapping[str, Sequence[Lease]]
    ) -> Operation[list[tuple[Any, ...]]]:
        """One statement for each table of live jobs."""
        try:
            return (yield from self._on_tables(statement, leases))
        except Exception as error:
            if not is_table_gone(error):
                raise
            # One of the queues was created again with another table: read all of them again.
            for name in leases:
                self._context.forget(name)
        return (yield from self._on_tables(statement, leases))

    def _on_tables(
        self, statement: str, leases: Mapping[str, Sequence[Lease]]
    ) -> Operation[list[tuple[Any, ...]]]:
        transactions = []
        # Each queue may have a table of its own; most share one, so this is one statement for all leases of a worker.
        for table, names in (yield from self._find_tables(leases)).items():
            values = lease_arrays(lease for name in names for lease in leases[name])
            values["queues"] = text_array(names)
            # A heartbeat that a crash of the server loses is sent again long before the lease ends.
            transactions.append((self._context.bind(statement, table, async_commit=True, **values),))
        results = (yield Batch(*transactions)) if transactions else []
        return [row for transaction in results for row in read_rows(transaction[0])]

    def _find_tables(self, names: Iterable[str]) -> Operation[dict[str, list[str]]]:
        tables: dict[str, list[str]] = {}
        for name in names:
            try:
                queue = yield from self._context.find(name)
            except UnknownQueue:
                continue  # its jobs are gone with it
            tables.setdefault(queue.table_name, []).append(name)
        return tables

    def touch(self, name: str, targets: Targets, *, own: bool) -> Operation[Settled]:
        """Renew the leases of active jobs, for a caller. Unlike `renew` it waits for rows that are locked, and takes
        ids without a lease, too.
        """

        def renew(queue: Queue) -> Operation[set[UUID]]:
            values = lease_arrays(asked.leases, asked.unfenced) | {"queues": text_array([name])}
            touch = self._context.bind("touch", queue.table_name, async_commit=own, **values)
            return {row[0] for row in read_first((yield Batch((touch,))))}

        asked = parse_targets(name, targets)
        done = yield from self._context.on_queue(name, renew, may_miss=True)
        return asked.answer(done, "active")

    def extend(self, name: str, lease: Lease, seconds: object) -> Operation[float]:
        """Let a lease expire later; return how long it is now."""
        more = check_duration("seconds", seconds, above=True)
        rows = yield from self._on_lease("extend", name, lease, seconds=more)
        if rows[0][0] is None:
            raise UsageError(f"extend: the lease of job {lease.id} was extended max_lease_extensions times")
        return float(rows[0][0])

    def report_progress(self, name: str, lease: Lease, value: JsonInput) -> Operation[None]:
        """Record how far a job has come."""
        text = encode(value, "progress", self._context.max_bytes)
        notify = self._context.bind("notify_waiters", ids=uuid_array([lease.id]))  # those that follow the job
        yield from self._on_lease("progress", name, lease, (notify,), progress=text)

    def _on_lease(
        self,
        statement: str,
        name: str,
        lease: Lease,
        follow_up: tuple[BoundStatement, ...] = (),
        **values: object,
    ) -> Operation[list[tuple[float | None]]]:
        def change(queue: Queue) -> Operation[list[tuple[float | None]]]:
            given = lease_arrays([lease]) | values
            bound = self._context.bind(statement, queue.table_name, queue=name, **given)
            return read_first((yield Batch((bound,), follow_up=follow_up)))

        rows = yield from self._context.on_queue(name, change, may_miss=True)
        if not rows:  # fenced: another attempt is active, or none
            raise LeaseLost(name, [lease.id])
        return rows
