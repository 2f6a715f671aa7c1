"""Bulk loads: any number of jobs, in one transaction, without holding them in memory."""

import enum
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias
from uuid import UUID

import attrs

from trioboss.errors import PayloadError, QueueChanged, UsageError
from trioboss.model.check import check_name
from trioboss.model.ids import make_id, make_ids
from trioboss.model.job import NewJob
from trioboss.model.payload import encode
from trioboss.model.policy import Policy
from trioboss.model.queue import Queue
from trioboss.postgres.errors import is_table_gone
from trioboss.postgres.operation import Batch, Copy, Operation
from trioboss.postgres.wire import read_rows
from trioboss.store.context import Context
from trioboss.store.copying import JobRows, StagingRows, blocks
from trioboss.store.rows import read_first
from trioboss.store.sending import SendOperations, require_key

__all__ = ["LoadOperations", "Loaded"]


class _Path(enum.Enum):
    """How a job is loaded: by COPY where nothing is unique, else through staging; throttled ones one by one."""

    COPY = enum.auto()
    STAGING = enum.auto()
    SEND = enum.auto()


_Item: TypeAlias = tuple[_Path, bytes, str | None, NewJob | None]
"""One job: its path, its id, its data as JSON text, and its options, if it has any. A tuple, because a million objects
of a class take longer than their COPY.
"""


@attrs.define
class Loaded:
    """The jobs that a load inserted. Ids only if they were asked for: a million of them need not be held."""

    count: int = 0
    ids: list[UUID] | None = None
    given: list[UUID] = attrs.field(factory=list)
    """Ids that the caller chose: jobs of these ids may have ended before."""

    def add(self, id: bytes) -> None:
        """Count a job that was inserted."""
        self.count += 1
        if self.ids is not None:
            self.ids.append(UUID(bytes=id))


@attrs.frozen
class LoadOperations:
    """Insert many jobs. The operation needs a transaction that is open around it."""

    _context: Context

    def insert(
        self, name: str, jobs: Iterable[NewJob | Mapping[str, Any]], *, keep_ids: bool, own: bool = True
    ) -> Operation[Loaded]:
        """Insert all jobs, or none if one of them is bad; the policy may leave some out. ``own``: the transaction is
        ours, not the caller's.
        """
        check_name("queue", name)
        # Read again, because COPY is only for a queue whose policy is standard now.
        queue = yield from self._context.reload(name)
        dead_letters: set[str] = set()
        # Dead letter queues are checked at the end, once each: a lookup for every job would be a round trip for each.
        loaded = Loaded(ids=[] if keep_ids else None)
        items = self._items(queue, jobs, dead_letters)
        paths = {_Path.COPY: self._copy, _Path.STAGING: self._stage, _Path.SEND: self._send}
        # Jobs are read and sent as a stream. Consecutive jobs of one path are one COPY, so that their order is kept.
        try:
            for path, group in groupby(items, key=itemgetter(0)):
                yield from paths[path](queue, group, loaded)
        except Exception as error:
            if not is_table_gone(error):
                raise
            self._context.forget(name)
            raise QueueChanged(name) from error
        for dead_letter in sorted(dead_letters):
            yield from self._context.reload(dead_letter)
        if not own:
            yield from self._check_snapshot(queue, loaded)
        return loaded

    def _check_snapshot(self, queue: Queue, loaded: Loaded) -> Operation[None]:
        ((isolation,),) = read_first((yield Batch((self._context.bind("get_isolation"),))))
        if isolation != "read committed":
            dropped = yield from SendOperations(self._context).check_snapshot(queue, loaded.given)
            loaded.count -= len(dropped)
            if loaded.ids is not None:
                loaded.ids = [id for id in loaded.ids if id not in dropped]

    def _items(
        self, queue: Queue, jobs: Iterable[NewJob | Mapping[str, Any]], dead_letters: set[str]
    ) -> Iterator[_Item]:
        staged = False
        new_ids = make_ids()
        for position, given in enumerate(jobs):
            try:
                item = self._item(queue, given, new_ids)
            except PayloadError as error:
                raise PayloadError(f"jobs[{position}].{error.path}", error.problem) from None
            except (UsageError, TypeError) as error:
                raise UsageError(f"jobs[{position}]: {error}") from None
            path, id, text, job = item
            if job is not None and job.dead_letter is not None:
                dead_letters.add(job.dead_letter)
            # From the first job on that needs staging, all go there: staging takes every job, and one long COPY costs
            # less than many short ones that alternate between the two tables.
            staged = staged or path is _Path.STAGING
            yield (_Path.STAGING, id, text, job) if staged and path is _Path.COPY else item

    def _item(self, queue: Queue, given: NewJob | Mapping[str, Any], new_ids: Iterator[bytes]) -> _Item:
        job: NewJob | None = None
        if type(given) is dict and given.keys() == _DATA_ONLY:  # nearly all jobs of large loads
            data = given["data"]
        elif isinstance(given, NewJob):
            job = given
            data = given.data
        elif isinstance(given, dict | Mapping):  # a dict first: to ask for a Mapping costs much more
            options = dict(given)
            data = options.pop("data", None)
            job = NewJob.from_options(None, options, call="insert") if options else None
        else:
            raise UsageError(
                f"{type(given).__name__} is not a job: use a NewJob, or a dict with data and options"
            )
        # Checked here and not by the database, so that the error names the job.
        require_key(queue, job or _PLAIN)
        text = None if data is None else encode(data, "data", self._context.max_bytes)
        id = UUID(str(job.id)).bytes if job is not None and job.id else next(new_ids)
        return _path(queue, job), id, text, job

    def _copy(self, queue: Queue, items: Iterable[_Item], loaded: Loaded) -> Operation[None]:
        # The time of the database, because COPY takes values and no expressions.
        ((now,),) = read_first((yield Batch((self._context.bind("read_clock"),))))
        rows = JobRows(queue, now)

        def written() -> Iterator[bytes]:
            for _, id, data, job in items:
                loaded.add(id)
                yield rows.write(id, data, job)

        statement = self._context.catalog.get("copy_jobs", queue.table_name)
        yield Copy(statement.text, blocks(written()))

    def _stage(self, queue: Queue, items: Iterable[_Item], loaded: Loaded) -> Operation[None]:
        load = make_id()
        rows = StagingRows(load.bytes)
        first_given = len(loaded.given)

        def written() -> Iterator[bytes]:
            for _, id, data, job in items:
                if job is not None and job.id is not None:
                    loaded.given.append(UUID(bytes=id))
                yield rows.write(id, data, job or _PLAIN)

        yield Copy(self._context.catalog.get("copy_staging").text, blocks(written()))
        values = {"queue": queue.name, "load": load, "keep_ids": loaded.ids is not None}
        release = self._context.bind("release_staged", queue.table_name, **values)
        unless_ended = SendOperations(self._context).drop_if_ended(queue, loaded.given[first_given:])
        results = yield Batch((release, unless_ended))
        ((count, ids),) = read_rows(results[0][0])
        dropped = {id for (id,) in read_rows(results[0][1])}
        loaded.count += count - len(dropped)
        if loaded.ids is not None:
            loaded.ids += [id for id in ids or () if id not in dropped]

    def _send(self, queue: Queue, items: Iterable[_Item], loaded: Loaded) -> Operation[None]:
        sends = SendOperations(self._context)
        for _, id, data, job in items:
            given = UUID(bytes=id)
            sent = yield from sends.send_encoded(queue.name, job or _PLAIN, given, data, own=False)
            if sent is not None:
                loaded.add(sent.bytes)


_PLAIN = NewJob()
_DATA_ONLY = {"data": None}.keys()


def _path(queue: Queue, job: NewJob | None) -> _Path:
    # Throttle slots are decided job by job. Ids of the caller may exist already, and other policies have policy slots:
    # COPY would fail as a whole where staging leaves out single jobs.
    if job is not None and job.singleton_seconds is not None:
        return _Path.SEND
    if queue.policy is Policy.STANDARD and (job is None or job.id is None):
        return _Path.COPY
    return _Path.STAGING
