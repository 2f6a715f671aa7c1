"""Rules that hold at every moment, checked in the database itself and in the order of what happened."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

import attrs
from lifecycle_sessions import Row

# Each row names a rule and the queue and key, or the job, that break it. Counts are by state and not by slot: a slot
# that the policy gives to the wrong jobs must not make two of them look like one.
# A job whose last attempt was released may be queued beside a retry that has taken its slot.
VIOLATIONS = """
    WITH live AS MATERIALIZED (
        SELECT j.queue, coalesce(j.key, '') AS key, q.policy, j.readiness, j.attempt, j.unique_key, j.owner, j.backlog,
               j.readiness < 'active' AND j.attempt = 0 AS created, j.readiness < 'active' AND j.attempt > 0 AS retry,
               EXISTS (SELECT FROM trioboss.attempt a WHERE a.job_id = j.id AND a.attempt = j.attempt
                       AND a.outcome = 'released') AS released
        FROM trioboss.live_job j JOIN trioboss.queue q ON q.name = j.queue
    )
    SELECT rule, queue, key, n
    FROM (
        SELECT queue, key, policy,
               count(*) FILTER (WHERE created) AS created,
               count(*) FILTER (WHERE retry AND NOT released) AS retry,
               count(*) FILTER (WHERE readiness < 'active') AS queued,
               count(*) FILTER (WHERE readiness = 'active') AS active,
               count(*) FILTER (WHERE readiness IN ('ready', 'active', 'ended')) AS admitted,
               count(*) FILTER (WHERE starts_with(unique_key, 'ended:') AND readiness <= 'active') AS once,
               count(*) FILTER (WHERE starts_with(unique_key, 'started:') AND readiness < 'active') AS singleton
        FROM live GROUP BY 1, 2, 3
    ) k, LATERAL (VALUES
        ('one created in a short queue', created, policy = 'short'),
        ('one active', active, policy IN ('singleton', 'stately', 'key_strict_fifo')),
        ('one admitted', admitted, policy IN ('singleton', 'stately', 'key_strict_fifo')),
        ('one created in a stately queue', created, policy = 'stately'),
        ('one retry in a stately queue', retry, policy = 'stately'),
        ('one job in an exclusive queue', queued + active, policy = 'exclusive'),
        ('one of send_once', once, true),
        ('one queued of send_singleton', singleton, true)
    ) r (rule, n, applies)
    WHERE applies AND n > 1
    UNION ALL
    SELECT 'a keyed job has a backlog, and owns its key if and only if it was admitted', queue, key, 1 FROM live
    WHERE (backlog IS NOT NULL) <> (policy IN ('singleton', 'stately', 'key_strict_fifo'))
       OR (backlog IS NOT NULL AND readiness IN ('ready', 'active', 'ended') AND owner IS DISTINCT FROM backlog)
       OR (readiness = 'waiting' AND owner IS NOT NULL)
    UNION ALL
    SELECT 'a free backlog has a check', queue, key, 1 FROM live w
    WHERE readiness = 'waiting'
      AND NOT EXISTS (SELECT FROM trioboss.live_job o WHERE o.queue = w.queue AND o.owner = w.backlog)
      AND NOT EXISTS (SELECT FROM trioboss.backlog_check c WHERE c.queue = w.queue AND c.backlog = w.backlog)
    UNION ALL
    SELECT 'only strict FIFO keeps failed jobs among the live', queue, key, 1
    FROM live WHERE readiness = 'ended' AND policy <> 'key_strict_fifo'
    UNION ALL
    SELECT 'a job is live or archived', name, id::text, count(*) FROM trioboss.all_jobs
    GROUP BY 2, 3 HAVING count(*) > 1
    UNION ALL
    SELECT 'an attempt ends once', queue, job_id::text, count(*) FROM trioboss.attempt
    GROUP BY job_id, queue, attempt HAVING count(*) > 1
    UNION ALL
    SELECT 'an active job has the terms of its lease, and no other has them', queue, id::text, 1 FROM trioboss.live_job
    WHERE (readiness = 'active') <> (expires_on IS NOT NULL)
       OR (readiness <> 'active' AND heartbeat_on IS NOT NULL) OR (readiness < 'active' AND worker IS NOT NULL)
       OR (readiness = 'active' AND started_on IS NULL)
"""

# While nobody changes the options of the queue.
TOO_MANY_ATTEMPTS = """
    SELECT 'no more retries than allowed', name, id::text, retry_count FROM trioboss.all_jobs
    WHERE retry_count > retry_limit
    UNION ALL
    SELECT 'no more attempts than allowed', j.name, j.id::text, j.attempt
    FROM trioboss.all_jobs j
    WHERE j.attempt > 1 + j.retry_limit + (
        SELECT count(*) FROM trioboss.attempt a WHERE a.job_id = j.id AND a.outcome IN ('released', 'cancelled'))
"""

THROTTLE = "SELECT queue, nullif(key, ''), slot, job_id FROM trioboss.throttle"
HISTORY = "SELECT job_id, attempt, outcome FROM trioboss.attempt"


@attrs.define(eq=False)
class Witness:
    """Records what happened, to check the order of starts without any of the rules by which it comes about."""

    events: int = 0
    attempts: dict[UUID, int] = attrs.field(factory=dict)
    sent: dict[UUID, int] = attrs.field(factory=dict)
    committed: dict[UUID, int] = attrs.field(factory=dict)
    irregular: set[UUID] = attrs.field(factory=set)
    """Jobs that do not wait from their commit on: deferred, resumed, moved by plain SQL, dead letters."""

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

    def check_order(self, id: UUID, rows: list[Row], *, commit_order: bool) -> None:
        """A job of strict FIFO starts when all that were committed before it have ended."""
        (job,) = (row for row in rows if row.id == id)
        backlog = [row.id for row in rows if row.live and (row.queue, row.key) == (job.queue, job.key)]
        if id in self.irregular:
            return
        for other in set(backlog) - self.irregular - {id}:
            if commit_order:
                first = (self.committed[other], self.sent[other]) < (self.committed[id], self.sent[id])
            else:
                first = self.committed[other] < self.sent[id]
            assert not first, f"{id} starts before {other}, which was committed first"


def is_close(value: float | None, expected: float | None) -> bool:
    if value is None or expected is None:
        return value is expected
    return abs(value - expected) < 1e-3


def in_bounds(value: datetime, now: datetime, low: float, high: float) -> bool:
    return low - 1e-3 <= (value - now).total_seconds() <= high + 1e-3
