"""The hot statements touch what they are about and nothing else, whatever stands in front of it.

Each is run with a plan made while the tables were empty (the plan of a service that was started before its queue
filled up), with one made when they were full and never analyzed, and with one made after ANALYZE.
"""

import json

import attrs
import psycopg
import pytest
from plan_helpers import CROWD, LOAD, PREPARE, Journey, Planner

from trioboss.model.job import make_id
from trioboss.testing import temporary_database

pytestmark = pytest.mark.xdist_group("plans")  # to fill the tables takes longer than all these tests

BATCH = 10


@pytest.fixture(scope="module")
def crowded_dsn(server_dsn, template):
    with temporary_database(server_dsn, template) as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(PREPARE)
        yield dsn


@pytest.fixture(scope="module")
def early_planner(crowded_dsn):
    """A session that has planned everything while there was nothing, in a database that is full now."""
    planner = Planner.open(crowded_dsn, "empty")
    for name in sorted({case.statement for case in CASES}):
        planner.prepare(name)
    with psycopg.connect(crowded_dsn) as connection:
        connection.execute(LOAD)
    yield planner
    planner.connection.close()


@pytest.fixture(scope="module", params=["empty", "never analyzed", "analyzed"])
def planner(request, early_planner, crowded_dsn):
    if request.param == "empty":
        yield early_planner
        return
    late = Planner.open(crowded_dsn, request.param)
    if request.param == "analyzed":
        late.connection.execute("VACUUM ANALYZE trioboss.job_common, trioboss.archive, trioboss.throttle")
    yield late
    late.connection.close()


@attrs.frozen
class Case:
    statement: str
    queue: str
    buffers: int
    """How many pages it may touch: about twice what it does."""
    where: str | None = None
    """The jobs it is about."""
    table: str = "job"
    largest_sort: int = BATCH
    values: dict[str, object] = attrs.field(factory=dict)

    def __str__(self) -> str:
        return f"{self.statement} {self.queue}"


CLAIM = {"limit": BATCH, "lazy": True}
CASES = [
    Case("claim", "backlog", 400, values=CLAIM),
    Case("claim", "later", 400, values=CLAIM),
    Case("claim", "blocked", 400, values=CLAIM),
    Case("claim", "keys", 400, values=CLAIM),
    Case("claim", "busy", 50, values=CLAIM),
    Case("claim_in_order", "backlog", 600, largest_sort=3 * (BATCH + 100), values=CLAIM),
    Case("find_due", "later", 30),
    Case("find_due", "keys", 30),
    Case("find_due", "blocked", 30),
    Case("ripen", "later", 450, values={"limit": BATCH}),
    Case("ripen", "backlog", 50, values={"limit": BATCH}),
    Case("place", "blocked", 700, largest_sort=40, values={"limit": BATCH}),
    Case("place", "keys", 25_000, largest_sort=2000, values={"limit": BATCH}),
    Case("claim_early", "later", 700, largest_sort=BATCH + 1000, values=CLAIM),
    Case("complete", "busy", 150, "state = 'active'"),
    Case("fail", "busy", 600, "state = 'active'", largest_sort=BATCH),
    Case("release", "busy", 300, "state = 'active'"),
    Case("touch", "busy", 150, "state = 'active'", values={"lazy": True}),
    Case("cancel", "backlog", 150, "state = 'created'"),
    Case("delete_job", "backlog", 350, "state = 'created'"),
    Case("resume", "backlog", 400, "state = 'cancelled'", "archive"),
    Case("retry", "backlog", 450, "state = 'failed'", "archive"),
    Case("drop_if_ended", "backlog", 300, "state = 'failed'", "archive"),
    Case("get_job", "backlog", 60, values={"id": make_id()}),
    Case("find_jobs_by_id", "backlog", 60, values={"id": make_id(), "limit": 10}),
    Case("explain_refusal", "backlog", 60, values={"id": make_id()}),
    Case("send", "backlog", 50, values={"id": make_id()}),
    Case("send_and_wake", "backlog", 50, values={"id": make_id()}),
    Case("send", "keys", 50, values={"id": make_id(), "singleton_key": "k77"}),
    Case(
        "send_throttled",
        "backlog",
        100,
        values={"id": make_id(), "singleton_seconds": 60, "singleton_key": "k"},
    ),
    Case("wake", "backlog", 20),
    Case(
        "look",
        "backlog",
        100,
        values={"queues": ["backlog", "later", "blocked", "keys", "busy"], "token": "x"},
    ),
]


def run(planner: Planner, case: Case) -> Journey:
    values = dict(case.values)
    parameters = planner.catalog.get(case.statement).parameters
    if "queue" in parameters:
        values["queue"] = case.queue
    elif "queues" in parameters:
        values.setdefault("queues", [case.queue])
    if case.where is not None:
        values["ids"] = planner.ids(case.queue, case.where, case.table, BATCH)
        assert len(values["ids"]) == BATCH
        if "leases" in parameters:
            values["leases"] = json.dumps({str(id): [None, None, None, 0] for id in values["ids"]})
    return planner.run(case.statement, **values)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_touches_only_what_it_is_about(planner, case):
    if case.where and case.table == "job" and planner.version < 17 and planner.made != "analyzed":
        pytest.skip("before 17 a list of ids may be used as a filter only, until the next ANALYZE")
    journey = run(planner, case)

    assert journey.where("Seq Scan") == []
    assert journey.where("Bitmap") == []
    assert journey.discarded <= 1000  # a loop in a loop compares each with each
    assert [sort for sort in journey.where("Sort") if sort.rows > case.largest_sort] == []
    assert journey.buffers <= case.buffers


def test_a_claim_costs_the_same_behind_a_hundred_thousand_jobs_as_behind_none(planner):
    case = Case("claim", "backlog", 0, values=CLAIM)
    full = run(planner, case)
    with planner.connection.transaction(force_rollback=True):
        planner.connection.execute(
            "DELETE FROM trioboss.job WHERE name = 'backlog' AND priority = 0 AND gate = 0"
        )
        less = run(planner, case)

    assert abs(full.buffers - less.buffers) < 50


def test_a_round_of_upkeep_looks_at_what_is_active_and_at_the_heads_of_the_queues(planner):
    journey = planner.run("watch_over", grace=5.0, margin=1.0, full=True)
    heads = 5 * 1000

    assert sum(visit.rows for visit in journey.visits if visit.table == "job_common") <= CROWD + heads


def test_orphans_are_looked_for_by_queue_and_not_by_job(planner):
    journey = planner.run("purge_orphans", limit=10_000)

    assert sum(visit.rows for visit in journey.visits if visit.table == "job_common") <= 10


ENDED = {"since": "-infinity", "until": "infinity"}


@pytest.mark.parametrize(
    ("statement", "when"), [("purge_queued", {}), ("purge_ended", ENDED)], ids=["queued", "ended"]
)
def test_retention_reads_the_pages_it_is_told_to(planner, statement, when):
    if planner.version < 14:
        pytest.skip("before 14 there is no way to read some pages only")
    journey = planner.run(statement, first="(0,0)", after="(10,0)", **when)

    assert journey.buffers <= 200


def test_the_statements_do_what_they_are_measured_for(planner):
    """A plan that finds nothing is fast, too."""
    found = {
        str(case): run(planner, case).visits[0].rows
        for case in CASES
        if case.statement
        in ("claim", "complete", "fail", "release", "cancel", "touch", "resume", "retry", "send")
    }
    few = {"claim busy": 1, "send backlog": 1, "send keys": 1}  # one row says that there is no job, or its id

    assert found == {case: few.get(case, BATCH) for case in found}
