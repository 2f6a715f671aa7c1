"""Commands that change a lake, killed before any of their steps: nothing is lost or doubled by the next one."""

from functools import partial

import pytest
from lake_helpers import assert_delta_follows, assert_same, release_lock
from lake_steps import NoSpark, Steps, assert_no_leftovers, do_without_spark
from pipeline_helpers import end_jobs, fail_attempts

from trioboss.pipeline import archive, compact, erase

archive = partial(archive, spark=NoSpark())
compact = partial(compact, spark=NoSpark())
erase = partial(erase, spark=NoSpark())


# Delta lakes have all the steps that plain ones have, and some more.
formats = pytest.mark.parametrize("format", ["delta", pytest.param("parquet", marks=pytest.mark.soak)])


@pytest.fixture
def steps(monkeypatch):
    do_without_spark(monkeypatch)
    return Steps(monkeypatch)


def add_rows(database):
    end_jobs(database, 2)
    fail_attempts(database, 1)


@pytest.fixture
def kill_everywhere(dsn, database, tmp_path, steps):
    """Kills a command before each of its steps, in a new lake each time, and runs it again; returns how many steps."""

    def kill_everywhere(prepare, command, check=None):
        n, killed = 0, True
        while killed:
            n += 1
            lake = tmp_path / str(n)
            arguments = prepare(lake) or {}
            killed = steps.kill_before(n, partial(command, lake, **arguments))
            release_lock(database)
            if check is not None:
                check(lake)
            command(lake, **arguments)  # also if it was not killed: a second time it does no harm
            archive(dsn, lake)
            assert_same(lake, database)
        return n - 1

    return kill_everywhere


@formats
def test_the_first_export_to_a_lake_can_be_killed_anywhere(dsn, database, kill_everywhere, format):
    def export(lake):
        archive(dsn, lake, format=format)
        if format == "delta":
            assert_delta_follows(lake)
        assert_no_leftovers(lake)

    assert kill_everywhere(lambda lake: add_rows(database), export) >= 10


@formats
def test_a_later_export_can_be_killed_anywhere(dsn, database, kill_everywhere, format):
    def prepare(lake):
        archive(dsn, lake, format=format)
        add_rows(database)

    def export(lake):
        archive(dsn, lake)
        if format == "delta":
            assert_delta_follows(lake)
        assert_no_leftovers(lake)

    assert kill_everywhere(prepare, export) >= 10


@pytest.mark.parametrize("change", [{"format": "delta"}, {"redact": ["output"]}])
def test_an_export_that_changes_what_a_lake_is_can_be_killed_anywhere(dsn, database, kill_everywhere, change):
    def prepare(lake):
        add_rows(database)
        archive(dsn, lake)

    assert kill_everywhere(prepare, lambda lake: archive(dsn, lake, **change)) >= 3


@formats
def test_a_compaction_can_be_killed_anywhere(dsn, database, kill_everywhere, format):
    def prepare(lake):
        for _ in range(2):
            add_rows(database)
            archive(dsn, lake, format=format)

    def join(lake):
        compact(dsn, lake)
        if format == "delta":
            assert_delta_follows(lake)
        else:
            assert_no_leftovers(lake)

    # The rows are there even before another command repairs anything.
    assert kill_everywhere(prepare, join, check=lambda lake: assert_same(lake, database)) >= 10


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_an_erasure_can_be_killed_anywhere(dsn, database, kill_everywhere, format):
    def prepare(lake):
        add_rows(database)
        end_jobs(database, 1, "gone")
        archive(dsn, lake, format=format)
        ((id,),) = database.execute("select id::text from trioboss.archive where queue = 'gone'").fetchall()
        return {"id": id}

    def erase_one(lake, id):
        assert erase(dsn, "gone", ids=[id], lake=lake).rows_left == 0
        assert id.encode() not in b"".join(path.read_bytes() for path in lake.rglob("*") if path.is_file())

    assert kill_everywhere(prepare, erase_one) >= 10


def test_an_export_that_drops_a_lost_batch_can_be_killed_anywhere(dsn, database, kill_everywhere, steps):
    first_after_commit = None

    def prepare(lake):
        nonlocal first_after_commit
        archive(dsn, lake)
        add_rows(database)
        first_after_commit = lose_a_staged_file(dsn, database, lake, steps, first_after_commit or 1)

    def drop(lake):
        archive(dsn, lake, drop_pending=True)
        assert_no_leftovers(lake)

    assert kill_everywhere(prepare, drop) >= 10


def lose_a_staged_file(dsn, database, lake, steps, n):
    """Kill an export once it has committed a batch, and delete one of the files that are not in place yet.

    ``n``: a step before which it is killed first; returns the first one after the commit.
    """
    while True:
        assert steps.kill_before(n, lambda: archive(dsn, lake))
        release_lock(database)
        if database.execute("select from trioboss.lake where pending is not null").fetchall():
            break
        n += 1
    (first, *_) = sorted((lake / "_staging").rglob("*.parquet"))
    first.unlink()
    return n
