"""Helpers that the tests of reading and writing share: history made by SQL, and rows of a DataFrame as plain values."""

import json
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

from trioboss.pipeline.database import Database
from trioboss.pipeline.files import Files
from trioboss.pipeline.manifest import FOLDERS

END_JOBS = """
insert into trioboss.archive (id, queue, priority, data, outcome, retry_count, start_after, started_on, key, created_on,
    completed_on, options, output, policy, worker, attempt, seq)
select gen_random_uuid(), %(queue)s, n %% 5, jsonb_build_object('n', n), %(state)s::trioboss.outcome, 0, at, at,
    'key' || n %% 3, at - interval '1 s', at + n * interval '1 ms', '{"retry_limit": 2}', '{"done": true}', 'standard',
    gen_random_uuid(), 1, n
from generate_series(%(first)s, %(first)s + %(count)s - 1) n, (select %(at)s::timestamptz as at) t
"""
FAIL_ATTEMPTS = """
insert into trioboss.attempt (job_id, queue, attempt, worker, started_on, ended_on, outcome, error)
select gen_random_uuid(), %(queue)s, 1, gen_random_uuid(), at, at + interval '1 s', 'failed', '{"message": "no"}'
from generate_series(1, %(count)s) n, (select %(at)s::timestamptz as at) t
"""


def end_jobs(connection, count, queue="email", *, first=0, at="now", state="completed"):
    """Put ended jobs into history."""
    values = {"queue": queue, "count": count, "first": first, "at": at, "state": state}
    connection.execute(END_JOBS, values)


def fail_attempts(connection, count, queue="email", *, at="now"):
    """Put failed attempts into history."""
    connection.execute(FAIL_ATTEMPTS, {"queue": queue, "count": count, "at": at})


def add_day(connection, day):
    """Make the tables of a day long gone."""
    connection.execute("select trioboss.add_days(%s::date, 0)", [day])


@contextmanager
def open_transaction(dsn):
    """A transaction that has a number, and stays open."""
    with psycopg.connect(dsn) as connection:
        connection.execute("select pg_current_xact_id()")
        yield connection


def read(spark, dsn, table="archive", **options):
    """The source."""
    return spark.read.format("trioboss").options(dsn=dsn, table=table, **options).load()


def ids_of(frame, column="id"):
    """The ids of a DataFrame, sorted; twice if they are there twice."""
    return sorted(row[0] for row in frame.select(column).collect())


def ids_in(connection, table="archive", column="id"):
    """The ids that the database has."""
    return sorted(str(row[0]) for row in connection.execute(f"select {column} from trioboss.{table}"))


def files_of_lake(lake):
    """The paths of the files that are part of a lake, read from its manifest without our own code."""
    folder = Path(lake, "_manifest")
    checkpoints = sorted(folder.glob("*.checkpoint.json"))
    covered = int(checkpoints[-1].name[:10]) if checkpoints else 0
    entries = [
        path
        for path in folder.glob("[0-9]*.json")
        if path.name[10:] == ".json" and int(path.name[:10]) > covered
    ]
    paths = []
    for path in [*checkpoints[-1:], *sorted(entries)]:
        entry = json.loads(path.read_text())
        removed = {file["path"] for file in entry["removed"]}
        paths = [path for path in paths if path not in removed] + [file["path"] for file in entry["files"]]
    return paths


def rows_of_lake(lake, table="archive"):
    """The rows in the files of a lake, without Spark: (id, transaction, queue, day as the folder is named)."""
    column = {"archive": "id", "attempt": "job_id"}[table]
    rows = []
    for path in files_of_lake(lake):
        if path.startswith(f"{FOLDERS[table]}/"):
            found = pq.ParquetFile(Path(lake, path)).read([column, "xid", "queue"]).to_pylist()
            day = path.split("/")[1].removeprefix("date=")
            rows += [(row[column], row["xid"], row["queue"], day) for row in found]
    return sorted(rows)


def rows_of_history(connection, table="archive"):
    """The same rows as the database has them."""
    column, time = {"archive": ("id", "completed_on"), "attempt": ("job_id", "ended_on")}[table]
    found = connection.execute(
        f"select {column}::text, xid::text::bigint, queue, ({time} at time zone 'UTC')::date::text"
        f" from trioboss.{table}"
    )
    return sorted(found.fetchall())


def write_without_spark(export, table, count, end, staging, progress):
    """Write the rows of a batch as LakeExport does it, but in milliseconds: for tests that make many batches."""
    column, time = {"archive": ("id", "completed_on"), "attempt": ("job_id", "ended_on")}[table]
    rows = export._database.connection.execute(
        f"select {column}::text as {column}, xid::text::bigint as xid, queue, ({time} at time zone 'UTC')::date"
        f" as day from trioboss.{table} where xid >= '{export.end}' and xid < '{end}'"
    ).fetchall()
    files = export.manifest.files
    for day in {row[3] for row in rows}:
        folder = Path(files.at(f"{staging}/{FOLDERS[table]}/date={day}").removeprefix("file:"))
        folder.mkdir(parents=True)
        values = [dict(zip((column, "xid", "queue"), row, strict=False)) for row in rows if row[3] == day]
        pq.write_table(pa.Table.from_pylist(values), folder / "part.parquet")
    return len(rows)


def rewrite_without_spark(export, table, files, staging, target, keep):
    """Write the rows of files to one file a day, as `rewriting` does it with Spark, but in milliseconds."""
    root = Path(export.manifest.files.root.removeprefix("file:"))
    rows = 0
    for day in {file.day for file in files}:
        found = [pq.ParquetFile(root / file.path).read() for file in files if file.day == day]
        folder = root / staging / FOLDERS[table] / f"date={day}"
        folder.mkdir(parents=True)
        joined = pa.concat_tables(found)
        if keep is not None:
            joined = keep(joined, table)
        pq.write_table(joined, folder / "part.parquet")
        rows += joined.num_rows
    return rows


class Steps:
    """Counts the steps of an export, each a change of the lake or of the database, and acts before the n-th."""

    STATEMENTS = ("take_lake", "commit_batch", "finish_batch")

    def __init__(self, monkeypatch, n, act):
        self.count, self._n, self._act = 0, n, act
        for name in ("write", "move", "delete"):
            monkeypatch.setattr(Files, name, self._counted(getattr(Files, name)))
        run = Database.run

        def counted(database, name, **values):
            if name in self.STATEMENTS:
                self._step()
            return run(database, name, **values)

        monkeypatch.setattr(Database, "run", counted)

    def _counted(self, method):
        def counted(files, *arguments):
            self._step()
            return method(files, *arguments)

        return counted

    def _step(self):
        self.count += 1
        if self.count == self._n:
            self._act()


def may_be_dropped(pipeline, day):
    """Whether retention would drop that day of history."""
    ((_, has_others, is_exported, is_read),) = pipeline.run("examine_day", day=day)
    return is_exported and not (has_others or is_read)
