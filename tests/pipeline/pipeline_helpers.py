"""What the tests of reading and writing share: history made by SQL, and rows of a DataFrame as plain values."""

from contextlib import contextmanager
from pathlib import Path

import psycopg
import pyarrow.parquet as pq

from trioboss.pipeline.files import Files
from trioboss.pipeline.lake import FOLDERS

END_JOBS = """
insert into trioboss.archive (id, name, priority, data, state, retry_limit, retry_count, retry_delay, retry_backoff,
    retry_jitter, backoff_count, start_after, started_on, singleton_key, expire_in, auto_heartbeat,
    max_lease_extensions, lease_extensions, created_on, completed_on, keep_until, delete_after, output, policy, worker,
    attempt, seq)
select gen_random_uuid(), %(queue)s, n %% 5, jsonb_build_object('n', n), %(state)s::trioboss.job_state, 2, 0, 0.5,
    false, 0, 0, at, at, 'key' || n %% 3, '15 min', true, 3, 0, at - interval '1 s', at + n * interval '1 ms',
    at + interval '14 days', '7 days', '{"done": true}', 'standard', gen_random_uuid(), 1, n
from generate_series(%(first)s, %(first)s + %(count)s - 1) n, (select %(at)s::timestamptz as at) t
"""
FAIL_ATTEMPTS = """
insert into trioboss.attempt (job_id, name, attempt, worker, started_on, ended_on, outcome, error)
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


def rows_of_lake(lake, table="archive"):
    """The rows in the files of a lake, without Spark: (id, transaction, queue, day as the folder says)."""
    column = {"archive": "id", "attempt": "job_id"}[table]
    rows = []
    for path in sorted(Path(lake, FOLDERS[table]).rglob("*.parquet")):
        day, queue = (part.partition("=")[2] for part in path.parts[-3:-1])
        found = pq.ParquetFile(path).read([column, "xid"]).to_pylist()
        rows += [(row[column], row["xid"], queue.replace("%2F", "/"), day) for row in found]
    return sorted(rows)


def rows_of_history(connection, table="archive"):
    """The same rows as the database has them."""
    column, time = {"archive": ("id", "completed_on"), "attempt": ("job_id", "ended_on")}[table]
    found = connection.execute(
        f"select {column}::text, xid::text::bigint, name, ({time} at time zone 'UTC')::date::text from trioboss.{table}"
    )
    return sorted(found.fetchall())


class Killed(BaseException):
    """Ends a job on the spot: nothing in the product catches it."""


class Killer:
    """Counts what a job changes in a lake or a database, and kills it before the n-th change."""

    def __init__(self, monkeypatch, n=None):
        self.steps = 0
        self.n = n
        for name in ("write", "move", "delete"):
            monkeypatch.setattr(Files, name, self._counted(getattr(Files, name)))

    def _counted(self, method):
        def counted(files, *arguments):
            self.step()
            return method(files, *arguments)

        return counted

    def step(self):
        """One more change is about to happen."""
        self.steps += 1
        if self.steps == self.n:
            raise Killed
