"""Rules that hold at every instant, asked of the database itself and of what was seen happening."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

import attrs
from lifecycle_desk import Row

# Each line names a rule and who breaks it.
VIOLATIONS = """
    SELECT rule, name, key, n
    FROM (
        SELECT name, coalesce(singleton_key, '') AS key, policy,
               count(*) FILTER (WHERE state = 'created') AS created,
               count(*) FILTER (WHERE state = 'retry') AS retry,
               count(*) FILTER (WHERE state = 'active') AS active,
               count(*) FILTER (WHERE state = 'failed') AS failed,
               count(*) FILTER (WHERE unique_until = 'ended' AND state <= 'active') AS once,
               count(*) FILTER (WHERE unique_until = 'started' AND state < 'active') AS singleton
        FROM trioboss.job GROUP BY 1, 2, 3
    ) k, LATERAL (VALUES
        ('one created in a short queue', created, policy = 'short'),
        ('one active', active, policy IN ('singleton', 'stately', 'key_strict_fifo')),
        ('one created in a stately queue', created, policy = 'stately'),
        ('one retry in a stately queue', retry, policy = 'stately'),
        ('one job in an exclusive queue', created + retry + active, policy = 'exclusive'),
        ('active, retry or failed: one of strict FIFO', active + retry + failed, policy = 'key_strict_fifo'),
        ('one of send_once', once, true),
        ('one queued of send_singleton', singleton, true)
    ) r (rule, n, applies)
    WHERE applies AND n > 1
    UNION ALL
    SELECT 'only strict FIFO keeps failed jobs among the live', name, singleton_key, 1
    FROM trioboss.job WHERE state > 'active' AND (state <> 'failed' OR policy <> 'key_strict_fifo')
    UNION ALL
    SELECT 'a job is in one place', name, id::text, count(*) FROM trioboss.all_jobs GROUP BY 2, 3 HAVING count(*) > 1
    UNION ALL
    SELECT 'no more retries than allowed', name, id::text, retry_count FROM trioboss.all_jobs
    WHERE retry_count > retry_limit
    UNION ALL
    SELECT 'no more attempts than allowed', j.name, j.id::text, j.attempt
    FROM trioboss.all_jobs j
    WHERE j.attempt > 1 + j.retry_limit + (
        SELECT count(*) FROM trioboss.attempt a WHERE a.job_id = j.id AND a.outcome IN ('released', 'cancelled'))
    UNION ALL
    SELECT 'an attempt ends once', name, job_id::text, count(*) FROM trioboss.attempt
    GROUP BY job_id, name, attempt HAVING count(*) > 1
    UNION ALL
    SELECT 'an active job has a start, and no other has a heartbeat', name, id::text, 1 FROM trioboss.job
    WHERE (state = 'active' AND (started_on IS NULL OR heartbeat_on IS NULL))
       OR (state <> 'active' AND heartbeat_on IS NOT NULL)
"""


SLOTS = "SELECT name, nullif(key, ''), slot, job_id FROM trioboss.throttle"
HISTORY = "SELECT job_id, attempt, outcome FROM trioboss.attempt"


@attrs.define(eq=False)
class Witness:
    """Remembers what was seen, to judge the order of starts without knowing how it comes about."""

    events: int = 0
    attempts: dict[UUID, int] = attrs.field(factory=dict)
    sent: dict[UUID, int] = attrs.field(factory=dict)
    committed: dict[UUID, int] = attrs.field(factory=dict)
    irregular: set[UUID] = attrs.field(factory=set)
    """Jobs that are not in line from their commit on: deferred, resumed, dead letters."""

    def saw_sent(self, id: UUID, *, irregular: bool) -> None:
        self.events += 1
        self.sent[id] = self.events
        if irregular:
            self.irregular.add(id)

    def saw_commit(self, ids: Iterable[UUID]) -> None:
        self.events += 1
        for id in ids:
            self.committed.setdefault(id, self.events)

    def check_attempts(self, rows: list[Row]) -> None:
        """The number of an attempt only grows."""
        for row in rows:
            assert row.attempt >= self.attempts.get(row.id, 0), row
            self.attempts[row.id] = row.attempt

    def check_turn(self, id: UUID, rows: list[Row], *, commit_order: bool) -> None:
        """A strict FIFO job starts when all that were there before it have ended."""
        (job,) = (row for row in rows if row.id == id)
        line = [row.id for row in rows if row.hot and (row.queue, row.key) == (job.queue, job.key)]
        if id in self.irregular:
            return
        for other in set(line) - self.irregular - {id}:
            if commit_order:
                first = (self.committed[other], self.sent[other]) < (self.committed[id], self.sent[id])
            else:
                first = self.committed[other] < self.sent[id]
            assert not first, f"{id} starts before {other}, which was there first"


def is_close(value: float | None, expected: float | None) -> bool:
    if value is None or expected is None:
        return value is expected
    return abs(value - expected) < 1e-3


def in_bounds(value: datetime, now: datetime, low: float, high: float) -> bool:
    return low - 1e-3 <= (value - now).total_seconds() <= high + 1e-3
