"""The hot statements read what they are about and nothing else, however many other jobs there are.

Each is run with a plan made while the tables were empty (the plan of a service that was started before its queue
filled up), with one made when they were full and never analyzed, and with one made after ANALYZE.
"""

import re
from importlib import resources

import psycopg
import pytest
from plan_cases import ADMIT, ANSWER, BATCH, CASES, CLAIM, KEYED_CLAIM, Case, run
from plan_helpers import LOAD, MANY, PREPARE, TABLES, Planner

from trioboss.model.ids import make_id
from trioboss.testing import temporary_database

pytestmark = pytest.mark.xdist_group("plans")  # to fill the tables takes longer than all these tests


@pytest.fixture(scope="module")
def full_dsn(server_dsn, template):
    with temporary_database(server_dsn, template) as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(PREPARE)
        yield dsn


@pytest.fixture(scope="module")
def early_planner(full_dsn):
    """A session that has planned everything while there was nothing, in a database that is full now."""
    planner = Planner.open(full_dsn, "empty")
    for name in sorted({case.statement for case in CASES}):
        planner.prepare(name)
    with psycopg.connect(full_dsn) as connection:
        connection.execute(LOAD)
    yield planner
    planner.connection.close()


@pytest.fixture(scope="module", params=["empty", "never analyzed", "analyzed"])
def planner(request, early_planner, full_dsn):
    if request.param == "empty":
        yield early_planner
        return
    late = Planner.open(full_dsn, request.param)
    if request.param == "analyzed":
        late.connection.execute(f"VACUUM ANALYZE {TABLES}")
    yield late
    late.connection.close()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_reads_only_what_it_is_about(planner, case):
    if case.where and case.table == "live_job" and planner.version < 17 and planner.made != "analyzed":
        pytest.skip("before 17 a list of ids may be used as a filter only, until the next ANALYZE")
    plan = run(planner, case)

    assert [node for node in plan.of_kind("Seq Scan") if node.rows + node.filtered > 20] == []
    assert plan.of_kind("Bitmap") == []
    assert plan.discarded <= 1000  # a loop in a loop compares each with each
    assert [sort for sort in plan.of_kind("Sort") if sort.rows > case.largest_sort] == []
    assert plan.buffers <= case.buffers
    if planner.made == "analyzed":
        assert case.uses <= {planner.index_of(index) for index in plan.indexes}


# -- the same cost, however many others there are

EQUALLY_CHEAP = [
    ("claim", "backlog", "queue = 'backlog' AND priority = 0", CLAIM),
    ("admit_and_claim", "keys", "queue = 'keys' AND seq % 2 = 0", KEYED_CLAIM),
    (
        "admit_and_claim",
        "blocked",
        "queue = 'blocked' AND key = 'jam' AND readiness = 'waiting'",
        KEYED_CLAIM,
    ),
]


@pytest.mark.parametrize(("statement", "queue", "others", "values"), EQUALLY_CHEAP)
def test_a_claim_costs_the_same_behind_a_hundred_thousand_jobs(planner, statement, queue, others, values):
    case = Case(statement, queue, 0, values=values)
    full = run(planner, case)
    with planner.connection.transaction(force_rollback=True):
        planner.connection.execute(f"DELETE FROM trioboss.live_job WHERE {others}")
        less = run(planner, case)

    assert abs(full.buffers - less.buffers) < 200


@pytest.mark.parametrize("statement", ["admit_and_claim", "admit"])
def test_a_claim_that_goes_on_after_a_position_reads_no_check_before_it(planner, statement):
    seq = "SELECT seq FROM trioboss.backlog_check WHERE queue = 'keys' ORDER BY seq OFFSET 36000 LIMIT 1"
    ((seq,),) = planner.connection.execute(seq).fetchall()
    values = {"after_rank": 0, "after_seq": seq, **(ADMIT if statement == "admit" else KEYED_CLAIM)}
    plan = run(planner, Case(statement, "keys", 0, values=values))

    assert plan.buffers <= 2000
    assert plan.rows_of("backlog_check") <= 1000


STAGE = """
INSERT INTO trioboss.staging (load, position, id, data, singleton_key)
SELECT %s, n, gen_random_uuid(), '1', 'new' || n %% 10 FROM generate_series(1, %s) n
"""


@pytest.mark.parametrize("queue", ["backlog", "keys"])
def test_a_load_of_many_jobs_compares_none_with_each_other(early_planner, full_dsn, queue):
    # The plan of a service that has inserted few jobs at a time, and now inserts very many.
    planner = Planner.open(full_dsn, "few")
    for _ in range(20):
        planner.connection.execute(STAGE, [make_id(), 1])
    planner.connection.execute("VACUUM ANALYZE trioboss.staging")
    planner.prepare("release_staged")
    load = make_id()
    planner.connection.execute(STAGE, [load, 2000])
    plan = planner.run("release_staged", queue=queue, load=load, keep_ids=False)
    planner.connection.execute("TRUNCATE trioboss.staging")
    planner.connection.close()

    assert plan.discarded <= 1000
    assert plan.rows_of("staging") <= 4 * 2000  # to lock the keys, to insert, to find the backlogs, to delete


def test_a_job_with_many_waiters_is_notified_once(early_planner):
    connection, id = early_planner.connection, make_id()
    with connection.transaction(force_rollback=True):
        connection.execute(
            "INSERT INTO trioboss.completion_waiter SELECT %s, gen_random_uuid(), now() FROM generate_series(1, 5000)",
            [id],
        )
        plan = early_planner.run("notify_waiters", ids=[id])

    assert plan.nodes[0].rows == 1
    assert plan.rows_of("completion_waiter") == 1


# -- maintenance


def test_leases_are_rescued_by_reading_leases(planner):
    plan = planner.run("rescue_leases", grace=5.0, margin=1.0, certain=True)

    assert plan.rows_of("live_job_common") <= MANY + 20_000 + 100


def test_warnings_read_the_first_jobs_of_the_queues(planner):
    plan = planner.run("find_warnings")

    assert plan.rows_of("live_job_common") <= 9 * 1000


def test_orphans_are_found_by_queue_and_not_by_job(planner):
    plan = planner.run("purge_orphans", limit=10_000)

    assert plan.rows_of("live_job_common") <= 20


def test_small_tables_are_pruned_without_reading_all_checks(planner):
    plan = planner.run("prune")

    assert plan.rows_of("backlog_check") <= 20


@pytest.mark.parametrize("state", ["failed", "cancelled"])
@pytest.mark.parametrize("statement", ["find_ended_jobs", "find_newest_ended_jobs"])
def test_jobs_that_did_not_complete_are_found_among_many_that_did(planner, statement, state):
    plan = planner.run(statement, queue="backlog", state=state, outcome=state, limit=BATCH)

    assert plan.rows_of(*(node.table for node in plan.nodes if node.table)) <= 30 * BATCH


def test_retention_reads_the_pages_it_is_told_to(planner):
    if planner.version < 14:
        pytest.skip("before 14 there is no way to read some pages only")
    plan = planner.run("purge_queued", first="(0,0)", after="(10,0)")

    assert plan.buffers <= 1500


def test_a_day_is_examined_by_queue_and_not_by_job(planner):
    ((today,),) = planner.connection.execute("SELECT (now() AT TIME ZONE 'UTC')::date").fetchall()
    plan = planner.run("examine_day", day=today)
    archive = {node.table for node in plan.nodes if node.table and node.table.startswith("archive")}

    assert plan.rows_of(*archive) <= 100


def test_the_statements_find_what_they_are_measured_for(planner):
    """A plan that finds nothing is fast, too."""
    counted = {
        "claim",
        "admit_and_claim",
        "complete",
        "release",
        "cancel",
        "touch",
        "renew",
        "check_leases",
        "resume",
        "retry",
    }
    counted |= {
        "retry_failed",
        "find_live_jobs",
        "find_newest_live_jobs",
        "find_ended_jobs",
        "find_newest_ended_jobs",
    }
    counted |= {"fail", "send", "get_blocked_keys", "complete_unkept"}
    found = {str(case): run(planner, case).nodes[0].rows for case in CASES if case.statement in counted}
    few = {
        "claim busy": 1,
        "admit_and_claim busy_keys": 1,
        "send backlog": 1,
        "send keys": 1,
    }  # one row without a job
    few |= {"get_blocked_keys blocked": 1, "admit_and_claim arrivals": 1}
    # Half of them have retries left; fail.sql ends what retry_failed.sql leaves, here all of them.
    few |= {"retry_failed busy": 5, "retry_failed busy_keys": 5}
    few |= {
        "find_live_jobs backlog": found["find_live_jobs backlog"]
    }  # the last case begins after all of them

    few |= dict.fromkeys(
        ("claim backlog", "claim later", "admit_and_claim blocked", "admit_and_claim keys"), ANSWER
    )

    assert found == {case: few.get(case, BATCH) for case in found}


# -- the comments of the indexes

MIGRATIONS = "\n".join(
    file.read_text("utf-8")
    for file in sorted(
        resources.files("trioboss.sql").joinpath("migrations").iterdir(), key=lambda file: file.name
    )
    if not file.name.endswith("down.sql")
)
INDEXES = re.findall(
    r"((?:--[^\n]*\n)*)CREATE (?:UNIQUE )?INDEX (\w+) ON trioboss\.(live_job|archive|backlog_check) ",
    MIGRATIONS,
)
ALL_INDEXES = re.findall(r"((?:--[^\n]*\n)*)CREATE (?:UNIQUE )?INDEX (\w+) ON ", MIGRATIONS)
CONSTRAINTS = {"live_job_slot", "live_job_unique_key"}  # they are there for the policies
FUNCTIONS = {"drop_if_ended"}  # the plans inside of a function are not shown


def test_every_index_says_which_statement_needs_it_and_which_promise_it_holds():
    names = {file.name for file in resources.files("trioboss.sql").joinpath("statements").iterdir()}
    assert len(ALL_INDEXES) > len(INDEXES) >= 10
    for comment, index in ALL_INDEXES:
        assert comment, index
        if index not in CONSTRAINTS:
            named = set(re.findall(r"\w+\.sql", comment))
            assert named, index
            assert named <= names, index
        # The promise of GUARANTEES.md that it holds, or that it holds none.
        assert re.search(r"\(P\d+|\bNo promise\b", comment), index


@pytest.mark.parametrize(
    ("comment", "index", "table"), INDEXES, ids=lambda value: value if value.isidentifier() else ""
)
def test_a_statement_uses_the_indexes_whose_comments_name_it(planner, comment, index, table):
    if planner.made != "analyzed":
        pytest.skip("an index that is the best is used after ANALYZE")
    used = {}
    for name in set(re.findall(r"(\w+)\.sql", comment)) & {case.statement for case in CASES} - FUNCTIONS:
        plans = [run(planner, case) for case in CASES if case.statement == name]
        used[name] = {planner.index_of(found) for plan in plans for found in plan.indexes}

    assert {name for name, found in used.items() if index not in found} == set()


# -- statistics

SAMPLE = ["sample_completed", "sample_failed", "sample_arrived", "sample_own_ids", "sample_live"]
TAKE = """
    UPDATE trioboss.sampling
    SET counted = now(), counted_before = now() - interval '20 s', xid_before = pg_snapshot_xmin(pg_current_snapshot()),
        xid = pg_current_xact_id(), taken_by = pg_current_xact_id()
"""


@pytest.mark.parametrize("statement", SAMPLE)
def test_a_sample_reads_what_is_new(planner, statement):
    values = {"bounds": "{0.1,1}"} if statement == "sample_completed" else {}
    with planner.connection.transaction(force_rollback=True):
        planner.connection.execute(TAKE)
        plan = planner.run(statement, **values)
    history = {
        node.table for node in plan.nodes if node.table and node.table.startswith(("archive", "attempt"))
    }

    assert [node for node in plan.of_kind("Seq Scan") if node.rows + node.filtered > 20] == []
    assert plan.rows_of(*history) <= 100
    if statement == "sample_arrived":  # the jobs of the tables were all sent just now
        assert plan.rows_of("live_job_common") <= 9 * MANY
    elif statement != "sample_live":  # which counts up to 100000 of each kind
        assert plan.rows_of("live_job_common") == 0


def test_the_list_of_blocked_keys_counts_a_part_of_the_jobs_behind_them(planner):
    plan = planner.run("list_blocked_keys", limit=100)

    assert [node for node in plan.of_kind("Seq Scan") if node.rows + node.filtered > 20] == []
    assert plan.rows_of("live_job_common") <= 10_000 + 100


@pytest.mark.parametrize("before", ["created", "retry", "active", "completed"])
def test_the_size_of_a_queue_reads_no_history_unless_ended_jobs_are_asked_for(planner, before):
    plan = planner.run("get_queue_size", queue="backlog", before=before)

    assert [node.table for node in plan.nodes if node.table and node.table.startswith("archive")] == []


@pytest.mark.parametrize("before", ["cancelled", "failed"])
def test_the_size_of_a_queue_with_ended_jobs_reads_the_history_of_a_day(planner, before):
    plan = planner.run("get_queue_size", queue="backlog", before=before)
    history = {node.table for node in plan.nodes if node.table and node.table.startswith("archive")}

    assert plan.rows_of(*history) <= 80_000 / 14 * 2  # a day is part of two tables


@pytest.mark.parametrize("queue", ["backlog", None])
def test_statistics_of_queues_read_the_failures_of_a_day_and_what_is_new(planner, queue):
    with planner.connection.transaction(force_rollback=True):
        planner.connection.execute(TAKE)
        plan = planner.run("get_queue_stats", queue=queue)
    history = {node.table for node in plan.nodes if node.table and node.table.startswith("archive")}

    assert [node for node in plan.of_kind("Seq Scan") if node.rows + node.filtered > 20] == []
    assert (
        plan.rows_of(*history) <= 200_000 / 14 * 2 / 20
    )  # two days of the fourteen, one job of 25 is failed or cancelled
