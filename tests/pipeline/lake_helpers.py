"""A lake that is changed: how it is filled, killed, and compared with the database and with its Delta tables."""

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from pipeline_helpers import end_jobs, fail_attempts, files_of_lake, rows_of_history, rows_of_lake

DAYS = ("2031-05-01", "2031-05-02", "2031-05-03")


class Killed(BaseException):
    """Ends a command on the spot: nothing in the product catches it."""


def kill():
    raise Killed


def fill(database, n=2):
    """Some jobs in each of three days, and attempts."""
    for day in DAYS:
        end_jobs(database, n, at=f"{day} 12:00+00")
    fail_attempts(database, 1)


def assert_same(lake, database):
    for table in ("archive", "attempt"):
        assert rows_of_lake(lake, table) == rows_of_history(database, table)


def delta_of(lake, folder="jobs", **options):
    return DeltaTable(str(Path(lake, folder)), **options)


def ids_of_delta(lake, folder="jobs", column="id", **options):
    return sorted(delta_of(lake, folder, **options).to_pyarrow_table(columns=[column])[column].to_pylist())


def assert_delta_follows(lake):
    """The Delta tables have exactly the files of the manifest."""
    files = files_of_lake(lake)
    for folder in ("jobs", "attempts"):
        actions = pa.table(delta_of(lake, folder).get_add_actions(flatten=True))
        found = [f"{folder}/{path}" for path in actions["path"].to_pylist()]
        assert sorted(found) == sorted(path for path in files if path.startswith(f"{folder}/"))


def release_lock(database):
    database.execute(
        "select pg_terminate_backend(pid, 5000) from pg_locks l join pg_database d on d.oid = l.database"
        " where locktype = 'advisory' and datname = current_database() and pid <> pg_backend_pid()"
    )
