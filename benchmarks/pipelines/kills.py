"""Are rows lost or doubled by kills? Each command is killed so many times in each of its phases, and run again.

The killed command is `trioboss pipeline …` in processes of its own, which all get SIGKILL. After the kill the lake has
to be one that readers can use, and after the next run it has to have exactly the rows of the database.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import psycopg

import trioboss
from benchmarks.harness.processes import ProgramFailed
from benchmarks.harness.progress import log
from benchmarks.harness.tables import Table
from benchmarks.pipelines.checking import Deviations, check_lake, check_load
from benchmarks.pipelines.context import PipelineContext
from benchmarks.pipelines.killing import KillPoint, run_killed
from benchmarks.pipelines.phases import PHASES, points
from trioboss.pipeline import archive, compact, erase, load

__all__ = ["measure_kills"]

_ROWS = 400
_MISSES = 5
"""Points that a command does not reach, one after the other, before the phase is given up."""
_FORMATS = ("parquet", "delta")
_COLUMNS = (
    "command",
    "phase",
    "kills",
    "lost",
    "doubled",
    "unknown",
    "Delta differs",
    "wrong before the next run",
)
_END_JOBS = """
insert into trioboss.archive (id, queue, priority, data, outcome, retry_count, start_after, started_on, key, created_on,
    completed_on, output, policy, worker, attempt, seq)
select gen_random_uuid(), %(queue)s, 0, jsonb_build_object('n', n), 'completed', 0, at, at, 'key', at, at, '{}',
    'standard', gen_random_uuid(), 1, n
from generate_series(1, %(count)s) n, lateral (select now() - n % 2 * interval '1 day' as at) t
"""
_FAIL_ATTEMPTS = """
insert into trioboss.attempt (job_id, queue, attempt, worker, started_on, ended_on, outcome, error)
select gen_random_uuid(), %(queue)s, 1, gen_random_uuid(), at, at, 'failed', '{}'
from generate_series(1, %(count)s) n, lateral (select now() - n % 2 * interval '1 day' as at) t
"""


@attrs.frozen
class _Trial:
    """One database, and a lake in which something is killed again and again."""

    context: PipelineContext
    dsn: str
    folder: Path

    def add_history(self, queue: str = "email", count: int = _ROWS) -> None:
        """Add jobs and attempts of two days, each in a transaction of its own."""
        with psycopg.connect(self.dsn, autocommit=True) as database:
            for statement in (_END_JOBS, _FAIL_ATTEMPTS):
                database.execute(
                    statement.replace("%(queue)s", f"'{queue}'").replace("%(count)s", str(count)).encode()
                )

    def archive(self, lake: Path, format: str | None = None) -> None:
        """Export all that is new."""
        archive(self.dsn, lake, spark=self.context.spark, format=format)

    def count_jobs(self, queue: str) -> int:
        """How many ended jobs of a queue history has."""
        with psycopg.connect(self.dsn) as database:
            found = database.execute(
                "select count(*) from trioboss.archive where queue = %s", [queue]
            ).fetchone()
        return 0 if found is None else int(found[0])


def measure_kills(context: PipelineContext) -> Table:
    """Kill each command so many times in each phase; the phases of one command share a lake in each format."""
    table = Table(f"{context.kills} kills in each phase", _COLUMNS)
    for command, phases in PHASES.items():
        for phase in phases:
            with _trial(context) as trial:
                kill = (
                    _kill_loads(trial, phase) if command == "load" else _kill_in_lakes(trial, command, phase)
                )
            kills, wrong, ended = kill
            table.add(command, phase, kills, ended.lost, ended.doubled, ended.unknown, ended.differing, wrong)
            log(f"{command}, {phase}: {kills} kills, {ended}")
    table.notes.append(
        "a kill is SIGKILL to the command, Java and all Python workers; the next run begins at once"
    )
    table.notes.append(
        "odd kills hit a lake of plain Parquet and even ones a Delta lake; Delta's log is of the latter"
    )
    return table


@contextmanager
def _trial(context: PipelineContext) -> Iterator[_Trial]:
    with context.server.database() as dsn, tempfile.TemporaryDirectory(prefix="trioboss-kills-") as folder:
        yield _Trial(context, dsn, Path(folder))


_Killed = tuple[int, int, Deviations]
"""How many kills there were, after how many of them readers saw something wrong, and what was wrong at the end."""
_Check = Callable[[], Deviations]


def _kill_repeatedly(
    trial: _Trial,
    command: str,
    phase: str,
    begin: Callable[[int], list[str]],
    check: Callable[[int], Deviations],
    again: Callable[[int], Deviations],
) -> _Killed:
    """Kill a command until it was killed so many times. ``begin`` prepares a run and returns its arguments."""
    kills = wrong = misses = 0
    total = Deviations()
    for number, point in enumerate(points(command, phase, trial.context.kills)):
        if _run(begin(number), trial.dsn, point):
            kills, misses = kills + 1, 0
            wrong += not check(number).is_good
        else:
            misses += 1
        total += again(number)
        if kills == trial.context.kills or misses == _MISSES:
            break
    return kills, wrong, total


def _run(arguments: list[str], dsn: str, point: KillPoint) -> bool:
    try:
        return run_killed(arguments, dsn, point)
    except ProgramFailed as error:
        raise ProgramFailed(f"{' '.join(arguments)}, to be killed {point}: {error}") from None


def _kill_in_lakes(trial: _Trial, command: str, phase: str) -> _Killed:
    """Kill a command that changes a lake: by turns in one of plain Parquet and in a Delta lake."""
    formats = ("delta",) if phase == "write Delta's log" else _FORMATS
    lakes = [trial.folder / format for format in formats]
    for lake, format in zip(lakes, formats, strict=True):
        trial.add_history()
        trial.archive(lake, format)

    def lake_of(number: int) -> Path:
        return lakes[number % len(lakes)]

    def begin(number: int) -> list[str]:
        trial.add_history()
        if command == "archive":
            return ["archive", "--to", str(lake_of(number)), "--nice", "0"]
        if command == "erase":
            trial.add_history(_gone(number), 2)
        trial.archive(lake_of(number))
        erased = ["--queue", _gone(number), "--key", "key"] if command == "erase" else []
        return [command, "--lake", str(lake_of(number)), *erased]

    def check(number: int) -> Deviations:
        return check_lake(lake_of(number), trial.dsn, whole=False, gone=[_gone(number)])

    def again(number: int) -> Deviations:
        lake, left = lake_of(number), 0
        if command == "compact":
            compact(trial.dsn, lake, spark=trial.context.spark)
        if command == "erase":
            erase(trial.dsn, _gone(number), key="key", lake=lake, spark=trial.context.spark)
            left = trial.count_jobs(_gone(number))
        trial.archive(lake)
        return check_lake(lake, trial.dsn, whole=True) + Deviations(unknown=left)

    return _kill_repeatedly(trial, command, phase, begin, check, again)


def _gone(number: int) -> str:
    """The queue whose jobs are erased."""
    return f"gone{number}"


def _kill_loads(trial: _Trial, phase: str) -> _Killed:
    """Kill loads of the same rows, each into a queue of its own."""
    rows = str(trial.folder / "rows.parquet")
    trial.context.spark.range(_ROWS, numPartitions=2).selectExpr("id as n").write.parquet(rows)

    def begin(number: int) -> list[str]:
        with trioboss.SyncBoss(trial.dsn, migrate=False) as boss:
            boss.create_queue(f"load{number}")
        return ["load", rows, "--queue", f"load{number}"]

    def check(number: int) -> Deviations:
        return check_load(trial.dsn, f"load{number}", _ROWS, ended=False)

    def again(number: int) -> Deviations:
        load([rows], f"load{number}", trial.dsn, spark=trial.context.spark)
        return check_load(trial.dsn, f"load{number}", _ROWS, ended=True)

    return _kill_repeatedly(trial, "load", phase, begin, check, again)
