"""Loading files: every format, every mapping, and a kill between any two steps."""

import json
import os
import shutil

import pyarrow as pa
import pytest

from trioboss.errors import UsageError
from trioboss.pipeline import LoadRefused, load
from trioboss.pipeline.database import Database, open_database
from trioboss.pipeline.ids import Ids
from trioboss.pipeline.inputs import digest_files, open_input, shape_jobs
from trioboss.pipeline.jobs.load import main
from trioboss.pipeline.options import WriteOptions
from trioboss.pipeline.releasing import release
from trioboss.pipeline.rows import Shape
from trioboss.pipeline.staging import stage_rows


class Killed(BaseException):
    """Ends a load on the spot: nothing in the product catches it."""


def jobs_in(database, columns="data"):
    return database.execute(f"select {columns} from trioboss.job order by seq").fetchall()


LINES = [
    {"n": 1, "who": "a", "mixed": "text", "none": None, "deep": {"x": [1, 2.5]}},
    {"n": 2, "who": "b", "mixed": 7, "deep": {}},
]


def test_lines_of_json_arrive_as_they_stand_in_the_file(spark, dsn, database, sync_boss, tmp_path):
    sync_boss.create_queue("email")
    path = tmp_path / "jobs.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES))

    ended = load([str(path)], "email", dsn, spark=spark, mapping={"singleton_key": "who", "priority": "n"})

    assert (ended.state, ended.released) == ("released", 2)
    assert jobs_in(database, "data, singleton_key, priority") == [
        (LINES[0], "a", 1),
        ({**LINES[1], "none": None}, "b", 2),
    ]


def test_the_same_file_twice_is_one_load_and_a_changed_file_another(
    spark, dsn, database, sync_boss, tmp_path
):
    sync_boss.create_queue("email")
    path = tmp_path / "jobs.csv"
    path.write_text('code,text\n007,"a ""quoted"", text\nof two lines"\n')
    for _ in range(2):
        first = load([str(path)], "email", dsn, spark=spark)
    path.write_text("code,text\n8,b\n9,c\n")
    second = load([str(path)], "email", dsn, spark=spark)

    assert (first.released, second.released) == (1, 2)
    assert jobs_in(database) == [
        ({"code": "007", "text": 'a "quoted", text\nof two lines'},),
        ({"code": "8", "text": "b"},),
        ({"code": "9", "text": "c"},),
    ]


def test_rows_that_cannot_be_read_are_rejected_with_the_others(
    spark, dsn, database, sync_boss, tmp_path, capsys
):
    sync_boss.create_queue("email")
    path = tmp_path / "jobs.json"
    path.write_text('{"data": {"n": 1}, "priority": 3}\n{"data": \n{"data": 2, "priority": "high"}\n')
    said = []

    with pytest.raises(LoadRefused, match="2 of 3 rows cannot be jobs") as refused:
        load([str(path)], "email", dsn, spark=spark, progress=said.append)

    assert "row 1: data: not JSON" in str(refused.value)
    assert "row 2: priority: 'high' is not a whole number" in str(refused.value)
    assert jobs_in(database) == []
    arguments = [str(path), "--queue", "email", "--dsn", dsn, "--bad-rows", "aside"]
    assert main(arguments) == 0
    assert "3 rows, 1 jobs in email, 2 rejected" in capsys.readouterr().out
    assert jobs_in(database, "data, priority") == [({"n": 1}, 3)]


def test_a_name_that_was_loaded_before_is_not_said_to_be_loaded_again(
    spark, dsn, database, sync_boss, tmp_path, capsys
):
    sync_boss.create_queue("email")
    path = tmp_path / "jobs.csv"
    arguments = [str(path), "--queue", "email", "--dsn", dsn, "--load-id", "x1"]
    path.write_text("a\n1\n")
    assert main(arguments) == 0
    assert "load x1: released; 1 rows, 1 jobs in email" in capsys.readouterr().out

    path.write_text("a\n2\n3\n")
    assert main(arguments) == 0

    assert "load x1: was loaded before, 1 jobs in email; nothing done" in capsys.readouterr().out
    assert jobs_in(database) == [({"a": "1"},)]


def test_files_are_told_apart_by_their_contents_whatever_their_names_and_times_are(spark, tmp_path):
    for name, content in [("a b.csv", "a\n1\n"), ("ä%20.csv", "a\n2\n"), ("_SUCCESS", "")]:
        (tmp_path / name).write_text(content)
    shutil.copytree(tmp_path, tmp_path.with_name("copy"))
    os.utime(tmp_path.with_name("copy") / "a b.csv", (1, 1))

    def digest(*names):
        return digest_files(spark, [str(tmp_path / name) for name in names])

    assert digest("*.csv") == digest("ä%20.csv", "a b.csv") == digest("../copy/*.csv")
    assert len(digest("*.csv")) == 2
    assert digest("a b.csv") != digest("ä%20.csv")


def test_a_file_that_was_touched_is_the_same_load(spark, dsn, database, sync_boss, tmp_path):
    sync_boss.create_queue("email")
    path = tmp_path / "jobs.csv"
    path.write_text("a\n1\n")
    first = load([str(path)], "email", dsn, spark=spark)
    os.utime(path, (1, 1))
    second = load([str(path)], "email", dsn, spark=spark)

    assert (first.id, first.is_repeat, second.id, second.is_repeat) == (first.id, False, first.id, True)
    assert jobs_in(database) == [({"a": "1"},)]


def test_a_row_that_cannot_be_read_is_no_payload_even_if_it_is_json(spark, tmp_path):
    short, bare = tmp_path / "short.csv", tmp_path / "bare.jsonl"
    short.write_text("a,b\n4\n5,6\n")
    bare.write_text('4\n{"a":"5"}\n')

    csv, lines = (shape_jobs(open_input(spark, [str(path)]), {}).collect() for path in (short, bare))

    assert [row.data for row in csv] == ["unreadable: 4", '{"a":"5","b":"6"}']
    assert [row.data for row in lines] == ["unreadable: 4", '{"a":"5"}']


def test_a_large_csv_file_is_read_by_several_tasks_unless_a_value_has_line_breaks(
    spark, tmp_path, monkeypatch
):
    monkeypatch.setattr("trioboss.pipeline.inputs._LARGE", 1)
    spark.conf.set("spark.sql.files.maxPartitionBytes", "4kb")
    rows = "".join(f'{n},"a ""quoted"", text {n}"\n' for n in range(500))
    try:
        (tmp_path / "lines.csv").write_text(f"n,text\n{rows}")
        (tmp_path / "breaks.csv").write_text(f'n,text\n{rows}500,"two\nlines"\n')
        lines, breaks = (open_input(spark, [str(tmp_path / name)]) for name in ("lines.csv", "breaks.csv"))

        assert lines.rdd.getNumPartitions() > 1
        assert breaks.rdd.getNumPartitions() == 1
        found = [(row.n, row.text) for row in lines.collect()]
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert found == [(str(n), f'a "quoted", text {n}') for n in range(500)]
    assert [row.text for row in breaks.collect()][-1] == "two\nlines"


def test_tables_and_parquet_and_dataframes_are_read(spark, dsn, database, sync_boss, tmp_path):
    sync_boss.create_queue("email")
    rows = spark.sql("select 1 as n, timestamp'2031-01-01 00:00:00Z' as at, named_struct('x', 1) as data")
    path = str(tmp_path / "rows.parquet")
    rows.coalesce(1).write.parquet(path)
    rows.createOrReplaceTempView("rows_to_load")

    for given in ([path], ["rows_to_load"], rows):
        jobs = shape_jobs(open_input(spark, given), {"start_after": "at"})
        assert jobs.columns == ["data", "start_after"]
        assert jobs.first().data == '{"x":1}'
    assert (
        load(rows, "email", dsn, spark=spark, mapping={"start_after": "at"}, dry_run=True).state == "checked"
    )
    assert jobs_in(database) == []


@pytest.mark.parametrize(
    ("files", "mapping", "problem"),
    [
        (["nowhere.txt"], {}, "nowhere.txt: neither a table nor a file"),
        ([], {}, "files: none were given"),
        (["nowhere"], {}, "nowhere: neither a table"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_refused(spark, dsn, sync_boss, files, mapping, problem):
    sync_boss.create_queue("email")
    with pytest.raises(UsageError, match=problem):
        load(files, "email", dsn, spark=spark, mapping=mapping)


def test_a_mapping_names_what_is_there(spark):
    rows = spark.range(1)
    with pytest.raises(UsageError, match="map: 'colour' is no option of a job"):
        shape_jobs(rows, {"colour": "id"})
    with pytest.raises(UsageError, match="map: there is no column 'key'"):
        shape_jobs(rows, {"singleton_key": "key"})


def test_a_load_killed_between_any_two_steps_and_run_again_has_each_row_once(
    dsn, database, sync_boss, monkeypatch
):
    """Every statement is a step: of the tasks that stage, and of the driver that releases."""
    sync_boss.create_queue("email")
    shape = Shape(None, (), False, False)
    rows = pa.RecordBatch.from_pylist([{"data": str(n)} for n in range(10)])
    ask = Database.ask

    def run_load(load_id):
        options = WriteOptions.parse({"dsn": dsn, "queue": "email", "loadId": load_id})
        stages = [stage_rows(options, shape, iter([rows.slice(first, 5)]), Ids.of_now()) for first in (0, 5)]
        return release(options, stages)

    kills, n = 0, 0
    while kills == n:
        n += 1
        steps = iter(range(1, 1000))

        def killing(self, name, steps=steps, n=n, **values):
            if next(steps) == n:
                raise Killed
            return ask(self, name, **values)

        with monkeypatch.context() as patches:
            patches.setattr(Database, "ask", killing)
            try:
                run_load(f"load {n}")
            except Killed:
                kills += 1
        run_load(f"load {n}")
        assert [data for (data,) in jobs_in(database)] == list(range(10))
        assert database.execute("select count(*) from trioboss.stage").fetchone() == (0,)
        database.execute("delete from trioboss.live_job")
    assert kills >= 15
    with open_database(dsn) as pipeline:
        assert pipeline.run("list_stages", load="x") == []
