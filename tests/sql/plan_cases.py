"""The hot statements, each on one queue of plan_helpers.py, and the cost that each may have."""

import attrs
from plan_helpers import Plan, Planner

from trioboss.model.ids import make_id

BATCH = 10
ANSWER = BATCH + 1
"""The rows of a claim's answer: one is about the claim."""


@attrs.frozen
class Case:
    """One statement on one queue, and what it may cost."""

    statement: str
    queue: str
    buffers: int
    """How many pages it may touch: about twice what it does."""
    uses: set[str] = attrs.field(factory=set)
    """Indexes that it has to use."""
    where: str | None = None
    """The jobs it is about."""
    table: str = "live_job"
    largest_sort: int = BATCH
    values: dict[str, object] = attrs.field(factory=dict)

    def __str__(self) -> str:
        return f"{self.statement} {self.queue}"


CLAIM = {"limit": BATCH, "async_commit": True}
ADMIT = {"limit": BATCH, "checks": 100, "by_priority": True}
KEYED_CLAIM = CLAIM | {"checks": 100}
READY, DEFERRED, BACKLOG = {"live_job_ready"}, {"live_job_deferred"}, {"live_job_backlog"}
CHECKS = {"backlog_check_order"}
ADMISSION = {*CHECKS, *BACKLOG, "live_job_owner"}
ACTIVE = "readiness = 'active'"
QUEUED = "readiness < 'active'"
CASES = [
    Case("claim", "backlog", 400, READY, largest_sort=ANSWER, values=CLAIM),
    Case("claim", "later", 400, READY, largest_sort=ANSWER, values=CLAIM),
    Case("claim", "busy", 50, READY, values=CLAIM),
    Case(
        "claim_onward",
        "backlog",
        400,
        READY,
        largest_sort=ANSWER,
        values=CLAIM | {"after_priority": 1, "after_seq": 20000},
    ),
    Case("claim_in_order", "backlog", 600, READY, largest_sort=3 * (BATCH + 100), values=CLAIM),
    Case("admit_and_claim", "blocked", 900, {*ADMISSION, *READY}, largest_sort=30, values=KEYED_CLAIM),
    Case("admit_and_claim", "keys", 1600, {*ADMISSION, *READY}, largest_sort=100, values=KEYED_CLAIM),
    Case("admit_and_claim", "arrivals", 1200, {*CHECKS, *READY}, largest_sort=100, values=KEYED_CLAIM),
    Case("admit_and_claim", "busy_keys", 50, {*CHECKS, *READY}, values=KEYED_CLAIM),
    Case("admit", "blocked", 1200, ADMISSION, largest_sort=30, values=ADMIT),
    Case("admit", "keys", 2000, ADMISSION, largest_sort=200, values=ADMIT),
    Case("admit", "arrivals", 1200, CHECKS, largest_sort=100, values=ADMIT),
    Case("find_next_due", "later", 30, DEFERRED),
    Case("find_next_due", "keys", 30, DEFERRED),
    Case("find_next_due", "blocked", 30, DEFERRED),
    Case("promote_due", "later", 450, DEFERRED, values={"limit": BATCH}),
    Case("promote_due", "later_keys", 700, DEFERRED, largest_sort=20, values={"limit": BATCH}),
    Case("promote_due", "backlog", 50, DEFERRED, values={"limit": BATCH}),
    # It reads a thousand more than it takes, each from a page of its own if nothing was clustered yet.
    Case("claim_early", "later", 3000, DEFERRED, largest_sort=BATCH + 1000, values=CLAIM),
    Case("complete", "busy", 250, where=ACTIVE),
    Case("complete", "busy_keys", 350, where=ACTIVE),
    Case("complete_unkept", "busy_keys", 300, where=ACTIVE),
    Case("complete_with_copy", "busy", 350, where=ACTIVE),
    Case("retry_failed", "busy", 450, where=ACTIVE),
    Case("retry_failed", "busy_keys", 600, where=ACTIVE),
    Case("fail", "busy", 900, where=ACTIVE),
    Case("release", "busy", 450, where=ACTIVE),
    Case("touch", "busy", 250, where=ACTIVE, values={"async_commit": True}),
    Case("renew", "busy", 450, where=ACTIVE, values={"async_commit": True}),
    Case("check_leases", "busy", 100, where=ACTIVE),
    Case("cancel", "backlog", 350, where=QUEUED),
    Case("cancel", "keys", 350, where=QUEUED),
    Case("delete_job", "backlog", 700, where=QUEUED),
    Case("resume", "backlog", 900, {"archive_id"}, "outcome = 'cancelled'", "archive"),
    Case("retry", "backlog", 1000, {"archive_id"}, "outcome = 'failed'", "archive"),
    Case("drop_if_ended", "backlog", 900, where="outcome = 'failed'", table="archive"),
    Case("get_job", "backlog", 120, {"archive_id"}, values={"id": make_id()}),
    Case("find_job_by_id", "backlog", 120, {"archive_id"}, values={"id": make_id()}),
    Case("find_live_jobs", "backlog", 150, {"live_job_pkey"}, values={"limit": BATCH}),
    Case("find_live_jobs", "backlog", 150, values={"limit": BATCH, "after": make_id()}),
    Case("find_newest_live_jobs", "backlog", 150, {"live_job_pkey"}, values={"limit": BATCH}),
    Case("find_ended_jobs", "backlog", 300, values={"limit": BATCH}),
    Case("find_ended_jobs", "history", 300, values={"limit": BATCH, "state": "completed"}),
    Case("find_newest_ended_jobs", "backlog", 300, values={"limit": BATCH}),
    Case("explain_refusal", "backlog", 100, values={"id": make_id()}),
    Case("explain_job", "blocked", 200, values={"id": make_id()}),
    Case("send", "backlog", 80, values={"id": make_id()}),
    Case("send_and_notify", "backlog", 80, values={"id": make_id()}),
    Case("send", "keys", 80, values={"id": make_id(), "singleton_key": "k77"}),
    # It calls functions: the first call in a session also reads their definitions from the catalogs.
    Case(
        "send_throttled",
        "backlog",
        450,
        values={"id": make_id(), "singleton_seconds": 60, "singleton_key": "k"},
    ),
    Case("notify_idle", "backlog", 20),
    Case("notify_leftover", "keys", 30, CHECKS),
    Case(
        "poll",
        "backlog",
        150,
        {*READY, *CHECKS},
        values={"token": "x", "queues": ["backlog", "later", "keys", "busy"]},
    ),
    Case("get_blocked_keys", "blocked", 30, {"live_job_owner"}),
]


def run(planner: Planner, case: Case) -> Plan:
    values = dict(case.values)
    parameters = planner.catalog.get(case.statement).parameters
    if "queue" in parameters:
        values["queue"] = case.queue
    elif "queues" in parameters:
        values.setdefault("queues", [case.queue])
    if case.where is not None:
        values["ids"] = planner.ids(case.queue, case.where, case.table, BATCH)
        assert len(values["ids"]) == BATCH
        if "attempts" in parameters:
            leases = "SELECT array_agg(attempt), array_agg(started_on) FROM unnest(%s::uuid[])"
            leases += " WITH ORDINALITY i (id, n)"
            leases += " JOIN trioboss.live_job USING (id) WHERE queue = %s"
            found = planner.connection.execute(leases, [values["ids"], case.queue]).fetchone()
            values["attempts"], values["starts"] = found
            if "unfenced" in parameters:
                values["unfenced"] = []
        if "failures" in parameters:
            values["failures"] = "{}"
    return planner.run(case.statement, **values)
