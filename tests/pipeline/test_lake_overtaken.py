"""Two exports to one lake, the first of which has lost its session and does not know it: nothing is lost or doubled."""

from functools import partial
from itertools import count, product

import pytest
from lake_helpers import assert_same, release_lock
from lake_steps import NoSpark, Steps, Stopped, assert_no_leftovers, do_without_spark
from pipeline_helpers import end_jobs, fail_attempts

import trioboss
from trioboss.errors import UsageError
from trioboss.pipeline import archive
from trioboss.pipeline.database import open_database
from trioboss.pipeline.export import ExportFenced, FilesLost, LakeError
from trioboss.pipeline.files import open_files
from trioboss.pipeline.manifest import Manifest

archive = partial(archive, spark=NoSpark())


@pytest.fixture
def steps(monkeypatch):
    do_without_spark(monkeypatch)
    return Steps(monkeypatch)


@pytest.fixture
def overtake(dsn, database, tmp_path, steps):
    """Lets an export overtake one that stands before its n-th step, and stand before its own m-th until that has ended.

    The one that was overtaken goes on with a new session, as if it were alone. Returns the errors of both, and whether
    each had so many steps. Without a limit to the second, m is None.
    """
    lakes = (tmp_path / str(n) for n in count())

    def overtake(n, m=None, **options):
        lake = next(lakes)
        add_rows(database)
        archive(dsn, lake, **options)
        add_rows(database)
        with open_database(dsn) as session:
            first = Stopped(steps, n, partial(archive, dsn, lake))
            release_lock(database)
            second = Stopped(steps, m, partial(archive, dsn, lake, batch_rows=3))
            add_rows(database)
            first.finish(session)
            second.finish()
        release_lock(database)
        manifest = Manifest(open_files(None, lake))
        ((exported,),) = database.execute(
            "select exported::text::bigint from trioboss.lake where address = %s", [manifest.files.root]
        ).fetchall()
        assert exported <= manifest.contents().end
        for error in (first.error, second.error):
            assert error is None or isinstance(error, LakeError | UsageError | trioboss.DatabaseUnavailable)
            assert not isinstance(error, FilesLost)
        archive(dsn, lake)
        assert_same(lake, database)
        assert_no_leftovers(lake)
        database.execute("delete from trioboss.lake")
        return first, second

    return overtake


def add_rows(database):
    for _ in range(2):
        end_jobs(database, 2)
        fail_attempts(database, 1)


def test_an_export_overtaken_before_any_step_loses_and_doubles_nothing(overtake):
    errors, n = set(), 1
    while (first := overtake(n)[0]).run.happened:
        errors.add(type(first.error))
        n += 1
    assert n > 10
    assert ExportFenced in errors


# The fourth step of an export is the commit of its batch, and the fifth moves the first file.
@pytest.mark.parametrize(
    ("first", "second"),
    [((4, 5), range(1, 9)), pytest.param(range(1, 17), range(1, 26), marks=pytest.mark.soak)],
    ids=["around both commits", "everywhere"],
)
def test_an_overtaken_export_that_goes_on_between_any_steps_of_the_next_harms_nothing(
    overtake, first, second
):
    for n, m in product(first, second):
        overtake(n, m)
