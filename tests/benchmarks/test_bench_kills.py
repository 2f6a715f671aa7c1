"""The checker of the benchmark `pipeline --only kills` finds each kind of damage, and its kill points exist."""

import json
import os
import subprocess
import sys
from importlib import import_module
from itertools import islice
from pathlib import Path

import attrs
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("deltalake")
pytest.importorskip("pyspark")

from deltalake import write_deltalake

from benchmarks.harness.processes import ProgramFailed
from benchmarks.pipelines import killing
from benchmarks.pipelines.checking import Deviations, check_lake, check_load
from benchmarks.pipelines.phases import PHASES, points

HOOK = Path(killing.__file__).parents[1] / "programs" / "kill_points"
END_JOB = """
insert into trioboss.archive (id, queue, priority, outcome, retry_count, start_after, created_on, completed_on, policy,
    attempt, seq)
values (gen_random_uuid(), 'email', 0, 'completed', 0, now(), now(), now(), 'standard', 1, 1)
"""


@pytest.fixture
def history(dsn):
    """The rows of four jobs that have ended, each in a transaction of its own, as they are to be in a lake."""
    with psycopg.connect(dsn, autocommit=True) as database:
        for _ in range(4):
            database.execute(END_JOB)
        rows = database.execute(
            "select id::text, queue, xid::text::bigint, (completed_on at time zone 'UTC')::date::text"
            " from trioboss.archive order by xid"
        ).fetchall()
    return [dict(zip(("id", "queue", "xid", "day"), row, strict=True)) for row in rows]


def write(lake, batches, end):
    """Write a lake of these batches, each a list of rows; all rows of transactions before ``end`` are to be there."""
    (lake / "_manifest").mkdir(parents=True)
    for number, rows in enumerate(batches, 1):
        path = f"jobs/date={rows[0]['day']}/{number}.parquet"
        (lake / path).parent.mkdir(parents=True, exist_ok=True)
        values = [{name: row[name] for name in ("id", "queue", "xid")} for row in rows]
        pq.write_table(pa.Table.from_pylist(values), lake / path)
        entry = {"end": end, "files": [{"path": path}], "removed": []}
        (lake / "_manifest" / f"{number:010}.json").write_text(json.dumps(entry))
    return lake


def test_a_lake_with_each_row_once_is_good(dsn, history, tmp_path):
    write(tmp_path, [history[:2], history[2:]], history[-1]["xid"] + 1)

    assert check_lake(tmp_path, dsn, whole=True).is_good
    assert check_lake(tmp_path, dsn, whole=False).is_good


def test_a_lake_that_ends_with_a_batch_is_good_for_readers_and_not_yet_whole(dsn, history, tmp_path):
    write(tmp_path, [history[:2]], history[2]["xid"])

    assert check_lake(tmp_path, dsn, whole=False).is_good
    assert check_lake(tmp_path, dsn, whole=True) == Deviations(lost=2)


@pytest.mark.parametrize(
    ("damage", "deviations"),
    [
        (lambda rows: [rows[:3]], Deviations(lost=1)),
        (lambda rows: [rows, rows[:1]], Deviations(doubled=1)),
        (lambda rows: [[*rows, rows[0] | {"id": "x"}]], Deviations(unknown=1)),
        (lambda rows: [[*rows[:3], rows[3] | {"day": "2001-01-01"}]], Deviations()),
        (lambda rows: [rows[:3], [rows[3] | {"day": "2001-01-01"}]], Deviations(lost=1, unknown=1)),
    ],
    ids=[
        "a row is lost",
        "a row is there twice",
        "a row is of nowhere",
        "the same day",
        "a row is in another day",
    ],
)
def test_a_damaged_lake_is_noticed(dsn, history, tmp_path, damage, deviations):
    write(tmp_path, damage(history), history[-1]["xid"] + 1)

    assert check_lake(tmp_path, dsn, whole=True) == deviations
    assert check_lake(tmp_path, dsn, whole=False) == deviations


def test_rows_of_a_queue_that_is_being_erased_do_not_count(dsn, history, tmp_path):
    write(tmp_path, [history[:3]], history[-1]["xid"] + 1)

    assert check_lake(tmp_path, dsn, whole=False, gone=["email"]).is_good


def test_a_batch_that_is_replaced_no_longer_counts(dsn, history, tmp_path):
    write(tmp_path, [history, history], history[-1]["xid"] + 1)
    entry = tmp_path / "_manifest" / "0000000002.json"
    replaced = {"path": f"jobs/date={history[0]['day']}/1.parquet"}
    entry.write_text(json.dumps(json.loads(entry.read_text()) | {"removed": [replaced]}))

    assert check_lake(tmp_path, dsn, whole=True).is_good


def test_a_delta_table_with_other_files_than_the_manifest_is_noticed(dsn, history, tmp_path):
    write(tmp_path, [history], history[-1]["xid"] + 1)
    write_deltalake(str(tmp_path / "jobs"), pa.table({"id": ["x"]}))

    assert check_lake(tmp_path, dsn, whole=True) == Deviations(differing=2)


@pytest.mark.parametrize(
    ("rows", "ended", "deviations"),
    [
        ([0, 1, 2], True, Deviations()),
        ([], False, Deviations()),
        ([], True, Deviations(lost=3)),
        ([0, 1], False, Deviations(lost=1)),
        ([0, 1, 2, 2], True, Deviations(doubled=1)),
        ([0, 1, 2, 3], True, Deviations(unknown=1)),
    ],
)
def test_a_load_of_some_rows_is_noticed(dsn, sync_boss, rows, ended, deviations):
    sync_boss.create_queue("email")
    for n in rows:
        sync_boss.send("email", {"n": n})

    assert check_load(dsn, "email", 3, ended=ended) == deviations


@pytest.mark.parametrize(
    ("command", "phase"), [(command, phase) for command in PHASES for phase in PHASES[command]]
)
def test_twenty_kills_of_a_phase_hit_all_its_steps_before_and_after(command, phase):
    chosen = list(islice(points(command, phase, 20), 20))

    steps = {(module, owner, name, argument) for module, owner, name, argument, _ in PHASES[command][phase]}
    found = {(point.module, point.owner, point.name, point.argument, point.moment) for point in chosen}
    assert {(*step, moment) for step in steps for moment in ("before", "after")} <= found
    for point in chosen:
        module = import_module(point.module)
        assert callable(getattr(getattr(module, point.owner) if point.owner else module, point.name))


@pytest.mark.parametrize(
    ("moment", "printed"),
    [("before", ["1", "2"]), ("after", ["1", "2", "3"]), ("during", ["1", "2", "3", "4"])],
)
def test_a_process_stops_at_its_kill_point(tmp_path, moment, printed):
    (tmp_path / "steps.py").write_text("def step(n): print(n, flush=True)")
    reached = tmp_path / "reached"
    point = killing.KillPoint("steps", "", "step", moment, nth=3, process="steps")
    environment = os.environ | {
        "KILL_POINT": json.dumps({**attrs.asdict(point), "reached": str(reached)}),
        "PYTHONPATH": os.pathsep.join([str(HOOK), str(tmp_path)]),
    }
    code = "import steps\nfor n in 1, 2, 3, 4: steps.step(n)"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        if moment == "during":
            assert process.wait(60) == 0
        killing._wait(process, reached)
        killing._kill_family(process)
        assert process.stdout.read().split() == printed
    assert reached.exists()


@pytest.mark.parametrize(("argument", "printed"), [(2, ["1"]), (9, ["1", "2"])])
def test_only_calls_with_the_argument_count(tmp_path, argument, printed):
    (tmp_path / "steps.py").write_text("class Steps:\n    def step(self, n): print(n, flush=True)")
    reached = tmp_path / "reached"
    point = killing.KillPoint("steps", "Steps", "step", "before", argument, process="steps")
    environment = os.environ | {
        "KILL_POINT": json.dumps({**attrs.asdict(point), "reached": str(reached)}),
        "PYTHONPATH": os.pathsep.join([str(HOOK), str(tmp_path)]),
    }
    code = "import steps\nfor n in 1, 2: steps.Steps().step(n)"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        killing._wait(process, reached)
        killing._kill_family(process)
        assert process.stdout.read().split() == printed
    assert reached.exists() == (argument == 2)


def test_a_command_that_fails_before_its_kill_point_is_an_error(dsn, tmp_path):
    point = killing.KillPoint("trioboss.pipeline.export", "LakeExport", "_write", "before")

    with pytest.raises(ProgramFailed, match="archive: exit code 2"):
        killing.run_killed(["archive", "--nonsense"], dsn, point)
