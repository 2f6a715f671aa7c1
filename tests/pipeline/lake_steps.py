"""Lakes without Spark, whose commands can be killed or stopped before any step: a change of a file or of the database.

Without Spark a command takes milliseconds, so that it can be killed at every step, and two of them can be interleaved
at every pair of steps.
"""

import threading
from contextlib import suppress
from pathlib import Path

import deltalake
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pipeline_helpers import files_of_lake, rewrite_without_spark, rows_of_lake, write_without_spark

from trioboss.pipeline import delta, rewriting
from trioboss.pipeline.database import Database
from trioboss.pipeline.export import LakeExport
from trioboss.pipeline.files import Files, _ArrowFiles
from trioboss.pipeline.jobs import erase as erase_job
from trioboss.pipeline.manifest import FOLDERS

STATEMENTS = ("take_lake", "commit_batch", "replace_batch", "finish_batch", "erase_jobs")
IDS = {"archive": "id", "attempt": "job_id"}


class NoSpark:
    """Stands for a session where none is needed: as for a client of Spark Connect, pyarrow reaches the files."""

    __module__ = "pyspark.sql.connect.stub"

    def addTag(self, tag):
        pass

    def removeTag(self, tag):
        pass


def do_without_spark(monkeypatch):
    """Let exports, compactions and erasures read and write files by pyarrow."""
    monkeypatch.setattr(LakeExport, "_write", write_without_spark)
    monkeypatch.setattr(rewriting, "_write", rewrite_without_spark)
    monkeypatch.setattr(erase_job, "find_in_lake", find_in_lake)
    monkeypatch.setattr(erase_job, "count_rows", count_rows)
    monkeypatch.setattr(erase_job, "erase_rows", erase_rows)


def _root(export):
    return Path(export.manifest.files.root.removeprefix("file:"))


def _names_in(export):
    return [(queue, id) for table in FOLDERS for id, _, queue, _ in rows_of_lake(_root(export), table)]


def find_in_lake(export, wanted, known):
    return {
        *known,
        *((queue, id) for queue, id in _names_in(export) if queue == wanted.queue and id in wanted.ids),
    }


def count_rows(export, names):
    return sum(name in names for name in _names_in(export))


def erase_rows(export, names, target):
    ids = [id for _, id in names]

    def keep(rows, table):
        return rows.filter(
            pc.invert(pc.is_in(rows[IDS[table]], value_set=pc.cast(ids, rows[IDS[table]].type)))
        )

    def is_affected(file):
        table = {folder: table for table, folder in FOLDERS.items()}[file.folder]
        rows = pq.ParquetFile(_root(export) / file.path).read()
        return keep(rows, table).num_rows < rows.num_rows

    affected = [file for file in export.manifest.contents().files if is_affected(file)]
    if not affected:
        return 0, []
    batch = rewriting.rewrite_files(export, affected, "erase", target=target, keep=keep)
    return sum(file.rows for file in affected) - sum(file.rows for file in batch.files), affected


class Killed(BaseException):
    """Ends a command on the spot: nothing in the product catches it."""


class Run:
    """One run of a command: how many steps it has made, and before which one something is to happen."""

    def __init__(self, n=None, act=None):
        self.count, self._n, self._act = 0, n, act
        self.happened = False
        self.session = None
        """If given, the run goes on with this session instead of its own."""

    def step(self):
        self.count += 1
        if self.count == self._n:
            self.happened = True
            self._act()


class Steps:
    """Counts the steps of the runs in each thread."""

    def __init__(self, monkeypatch):
        self._of_thread = threading.local()
        for files in (Files, _ArrowFiles):
            for name in ("_create", "move", "delete"):
                monkeypatch.setattr(files, name, self._counted(getattr(files, name)))
        monkeypatch.setattr(LakeExport, "clean", self._counted(LakeExport.clean))
        monkeypatch.setattr(delta, "_commit", self._counted(delta._commit))
        monkeypatch.setattr(deltalake.DeltaTable, "create", self._counted(deltalake.DeltaTable.create))
        run_statement = Database.run

        def counted(database, name, **values):
            run = self._run()
            if name in STATEMENTS:
                run.step()
            return run_statement(run.session or database, name, **values)

        monkeypatch.setattr(Database, "run", counted)
        write = LakeExport._write

        def write_by_session(export, *given):
            export._database = self._run().session or export._database
            return write(export, *given)

        monkeypatch.setattr(LakeExport, "_write", write_by_session)

    def _run(self):
        return getattr(self._of_thread, "run", None) or Run()

    def _counted(self, function):
        def counted(*arguments, **options):
            self._run().step()
            return function(*arguments, **options)

        return counted

    def follow(self, run, command):
        """Run a command in this thread."""
        self._of_thread.run = run
        try:
            return command()
        finally:
            self._of_thread.run = None

    def kill_before(self, n, command):
        """Run a command that is killed before its n-th step; return whether it had so many."""

        def kill():
            raise Killed

        run = Run(n, kill)
        with suppress(Killed):
            self.follow(run, command)
        return run.happened


class Stopped:
    """A command in a thread of its own that stops before its n-th step until it is told to go on."""

    def __init__(self, steps, n, command):
        self.error = None
        self.run = Run(n, self._stop)
        self._steps, self._command = steps, command
        self._has_stopped, self._go_on = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()
        assert self._has_stopped.wait(60)

    def _follow(self):
        try:
            self._steps.follow(self.run, self._command)
        except Exception as error:
            self.error = error
        self._has_stopped.set()

    def _stop(self):
        self._has_stopped.set()
        assert self._go_on.wait(60)

    def finish(self, session=None):
        """Let it go on to its end."""
        self.run.session = session
        self._go_on.set()
        self._thread.join(60)
        assert not self._thread.is_alive()


def assert_no_leftovers(lake):
    """All files in the folder are part of the lake: there are neither staged nor unfinished nor removed ones."""
    placed = {str(path.relative_to(lake)) for path in Path(lake).rglob("*.parquet")}
    assert placed == set(files_of_lake(lake))
    assert list(Path(lake).rglob("*.unfinished*")) == []
