"""Ends a load on the driver: all its stages become jobs in one commit, or none does."""

from collections.abc import Sequence
from datetime import datetime

import attrs

from trioboss.errors import DatabaseUnavailable, TriobossError, UnknownQueue
from trioboss.model.policy import Policy
from trioboss.model.queue import Queue
from trioboss.pipeline.database import Answer, Database, open_database
from trioboss.pipeline.options import WriteOptions
from trioboss.pipeline.staging import Staged

__all__ = ["Load", "LoadRefused", "drop_stages", "find_load", "find_queue", "refusal", "release"]

_BY_KEY = (Policy.SHORT, Policy.STATELY, Policy.EXCLUSIVE)


@attrs.frozen
class Load:
    """How a load ended: 'released', 'refused' because of bad rows, or only 'checked'."""

    id: str
    queue: str
    state: str
    staged: int
    released: int
    rejected: int
    is_repeat: bool = False
    """It was released before, and is left as it was."""

    @property
    def left_out(self) -> int:
        """How many good rows were refused: by the policy, or because a job has the same id."""
        return self.staged - self.rejected - self.released if self.state == "released" else 0


class LoadRefused(TriobossError):
    """Some rows of a load cannot be jobs, so none of them became one. The table ``rejected`` has them, with reasons."""

    def __init__(self, load: Load, examples: Sequence[tuple[int, str]]) -> None:
        listed = "".join(f"\n  row {position}: {problem}" for position, problem in examples)
        more = "\n  …" if load.rejected > len(examples) else ""
        super().__init__(
            f"load {load.id!r}: {load.rejected} of {load.staged} rows cannot be jobs, so none was loaded:{listed}{more}"
        )
        self.load = load


def find_queue(database: Database, name: str) -> Queue:
    """The queue of that name, or raise UnknownQueue."""
    for row in database.run("get_queues", queue=name):
        return Queue(*row)
    raise UnknownQueue(name)


def find_load(database: Database, id: str) -> Load | None:
    """How a load ended, if it has."""
    for row in database.run("get_load", load=id):
        return Load(*row[:6])
    return None


def release(options: WriteOptions, stages: Sequence[Staged]) -> Load:
    """End a load; one that was released before is left as it is. Raises LoadRefused."""
    with open_database(options.dsn, options.schema) as database:
        with database.transaction():
            if database.run("open_load", load=options.load, queue=options.queue):
                _end(database, options, [stage for stage in stages if stage.rows])
        load = find_load(database, options.load)
        assert load is not None
        if load.released:
            database.run("notify_idle", queue=options.queue)
        drop_stages(database, options.load)
        if load.state == "refused":
            raise refusal(database, load.id)
    return load


def refusal(database: Database, id: str) -> LoadRefused:
    """The error of a load that was refused, with the reason."""
    load = find_load(database, id)
    assert load is not None
    rows = database.run("get_rejected", load=id, limit=5)
    return LoadRefused(load, [(position, problem) for position, problem, _ in rows])


def drop_stages(database: Database, load: str) -> None:
    """Drop the stages of a load. One that a task is still writing to is left for the next load to sweep up."""
    for (table,) in database.run("list_stages", load=load):
        database.drop_stage(table)


def _end(database: Database, options: WriteOptions, stages: Sequence[Staged]) -> None:
    queue = find_queue(database, options.queue)
    rejected = _check(database, stages)
    staged = sum(stage.rows for stage in stages)
    if rejected:
        _keep_rejected(database, options.load, stages)
    state, released = "released", 0
    if options.dry_run:
        state = "checked"
    elif rejected and options.bad_rows == "fail":
        state = "refused"
    else:
        released = _Release(database, queue, options).run(stages)
    database.run(
        "close_load", load=options.load, state=state, staged=staged, released=released, rejected=rejected
    )


def _check(database: Database, stages: Sequence[Staged]) -> int:
    """How many rows are bad. All that were staged must still be there: a crash of the server empties stages."""
    bad = 0
    for stage in stages:
        ((rows, problems),) = database.run("check_stage", of={"stage_row": stage.table})
        if rows != stage.rows:
            raise DatabaseUnavailable(f"{stage.rows} rows were staged, {rows} are there: load them again")
        bad += problems
    return bad


def _keep_rejected(database: Database, load: str, stages: Sequence[Staged]) -> None:
    ahead = 0
    for stage in stages:
        database.run("keep_rejected", of={"stage_row": stage.table}, load=load, ahead=ahead)
        ahead += stage.rows


@attrs.frozen
class _Release:
    _database: Database
    _queue: Queue
    _options: WriteOptions

    def run(self, stages: Sequence[Staged]) -> int:
        """Turn all stages into jobs, in their order; returns how many jobs that made."""
        if self._queue.policy is not Policy.STANDARD:
            stages = self._gather(stages)
        self._database.run("prepare_release")
        ((now,),) = self._database.run("read_clock")
        released = ahead = 0
        for stage in stages:
            released += self._release(stage, ahead, now)
            ahead += stage.rows
        return released

    def _gather(self, stages: Sequence[Staged]) -> Sequence[Staged]:
        """All stages joined to one, so that the locks of keys are taken in one order."""
        if not stages:
            return stages
        first, rows = stages[0], stages[0].rows
        for stage in stages[1:]:
            self._database.run("gather_stage", source=stage.table, target=first.table, ahead=rows)
            rows += stage.rows
        if self._queue.policy is Policy.KEY_STRICT_FIFO and self._queue.commit_order:
            self._run("lock_keys_of_stage", first)
        return [attrs.evolve(first, rows=rows)]

    def _release(self, stage: Staged, ahead: int, now: datetime) -> int:
        values = {"ahead": ahead, "rate": self._options.rate, "now": now}
        by_key = self._queue.policy in _BY_KEY
        if not by_key and not self._options.has_ids:
            return self._released("release_stage", stage, **values)
        released = self._released("release_stage_unless_taken", stage, by_key=by_key, **values)
        if self._options.has_ids:
            released -= self._run("drop_ended_of_stage", stage).written
        return released

    def _released(self, name: str, stage: Staged, **values: object) -> int:
        ((count,),) = self._run(name, stage, **values).rows
        return int(count)

    def _run(self, name: str, stage: Staged, **values: object) -> Answer:
        of = {"stage_row": stage.table}
        return self._database.ask(
            name, job_table=self._queue.table_name, of=of, queue=self._queue.name, **values
        )
