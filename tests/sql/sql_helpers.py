"""A queue under test: operations by name, by our own session or by a caller, and many jobs at once."""

import time
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import psycopg
from lifecycle_sessions import OWN, Sessions

from trioboss.model.job import Job, NewJob
from trioboss.model.settle_and_claim import ClaimRequest, ClaimResult

NAME = "q"

# So many jobs as `send` would leave them, each sent by a statement of its own.
_FILL = """
    WITH sent AS (
        INSERT INTO trioboss.live_job_common (id, queue, priority, rank, start_after, key, backlog, slot, readiness)
        SELECT gen_random_uuid(), q.name, %(priority)s, trioboss.backlog_rank(q.policy, %(priority)s), s.start, s.key,
               trioboss.key_backlog(q.keyed, s.key), trioboss.queued_slot(q.policy, s.key, 0),
               CASE WHEN %(deferred)s THEN 'deferred'
                    ELSE trioboss.queued_readiness(NULL, NULL, trioboss.key_backlog(q.keyed, s.key)) END
        FROM trioboss.queue q, (
            SELECT replace(%(key)s, '#', n::text) AS key, now() + %(start)s::interval + n * '1 ms'::interval AS start
            FROM generate_series(1, %(count)s) n
        ) s
        WHERE q.name = %(queue)s
        RETURNING seq, priority, queue, backlog, readiness
    )
    INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog)
    SELECT seq, priority, queue, backlog FROM sent WHERE readiness = 'waiting'
"""


class QueueUnderTest:
    """A queue; every operation may be a caller's."""

    def __init__(
        self, sessions: Sessions, policy: str = "standard", *, name: str = NAME, **options: Any
    ) -> None:
        self.sessions = sessions
        self.name = name
        sessions.run(OWN, lambda own: sessions.store.queues.create(name, {"policy": policy, **options}))

    def run(self, part: str, operation: str, *args: Any, session: int = OWN, **options: Any) -> Any:
        """Run an operation of a part of the store on this queue."""
        method = getattr(getattr(self.sessions.store, part), operation)
        return self.sessions.run(session, lambda own: method(self.name, *args, **options))

    def send(
        self, key: str | None = None, session: int = OWN, *, unique_until: str | None = None, **options: Any
    ) -> UUID:
        job = NewJob(singleton_key=key, **options)
        own = session == OWN
        return self.run("sending", "send", job, session=session, own=own, unique_until=unique_until)

    def try_claim(self, limit: int = 10, session: int = OWN, **criteria: Any) -> ClaimResult:
        request = ClaimRequest(limit, **criteria)
        return self.run("claiming", "claim", request, session=session, own=session == OWN)

    def claim(self, limit: int = 10, session: int = OWN, **criteria: Any) -> list[Job]:
        return list(self.try_claim(limit, session, **criteria).jobs)

    def fetch(self, session: int = OWN, **options: Any) -> list[Job]:
        defaults = {"batch_size": 1, "priority": True, "ignore_start_after": False}
        bounds = {"min_priority": None, "max_priority": None}
        return self.run(
            "manual", "fetch", session=session, own=session == OWN, **(defaults | bounds | options)
        )

    def complete(self, jobs: Any, session: int = OWN) -> None:
        self.run("manual", "complete", jobs, None, session=session, own=session == OWN)

    def fail(self, jobs: Any, session: int = OWN) -> None:
        self.run("manual", "fail", jobs, "an error", session=session, own=session == OWN)

    def touch(self, jobs: Any, session: int = OWN) -> None:
        self.run("leases", "touch", jobs, session=session, own=session == OWN)

    def release(self, jobs: Iterable[Job]) -> None:
        self.run("settling", "release_leases", [job.lease for job in jobs])

    def change(self, name: str, targets: Any, session: int = OWN) -> None:
        """Cancel, resume, retry or delete."""
        self.run("changing", name, targets, session=session, own=session == OWN)

    def fill(
        self, key: str, count: int, *, deferred: bool = False, start: str = "-1 h", priority: int = 0
    ) -> None:
        """Send so many jobs; a # in their key is their number."""
        values = {"key": key, "count": count, "deferred": deferred, "start": start, "priority": priority}
        self.sessions.own.execute(self.sessions.qualified(_FILL), values | {"queue": self.name})

    def make_due(self, seconds: int) -> None:
        """Jobs deferred for less are due now."""
        self.sessions.own.execute(
            "UPDATE trioboss.live_job SET start_after = start_after - %s * interval '1 s'", [seconds]
        )

    def states(self) -> list[str]:
        """The states of all jobs, in order of sending."""
        return [state for (state,) in self.sessions.query("SELECT state FROM trioboss.all_jobs ORDER BY seq")]

    def count(self, condition: str = "true") -> int:
        """How many live jobs meet a condition."""
        ((count,),) = self.sessions.query(f"SELECT count(*) FROM trioboss.live_job WHERE {condition}")
        return count

    def count_checks(self) -> int:
        ((count,),) = self.sessions.query("SELECT count(*) FROM trioboss.backlog_check")
        return count


def keys(jobs: Iterable[Job]) -> list[str | None]:
    return [job.singleton_key for job in jobs]


def wait_until_blocked(connection: psycopg.Connection[Any], pid: int, seconds: float = 30.0) -> None:
    """Return when that session waits for a lock."""
    deadline = time.monotonic() + seconds
    while not connection.execute("SELECT cardinality(pg_blocking_pids(%s))", [pid]).fetchone()[0]:
        assert time.monotonic() < deadline, "it does not wait"
