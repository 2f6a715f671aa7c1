"""Bulk loads: any number of jobs, in one transaction, without holding them in memory."""

import enum
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any
from uuid import UUID

import attrs

from trioboss.errors import PayloadError, UnknownQueue, UsageError
from trioboss.model.check import check_name
from trioboss.model.job import NewJob, make_id
from trioboss.model.payload import encode
from trioboss.model.policy import Policy
from trioboss.model.queue import Queue
from trioboss.postgres.conversation import Conversation, Copy, Flush
from trioboss.postgres.results import read_rows
from trioboss.store.context import Context
from trioboss.store.copying import JobRows, StagingRows, blocks
from trioboss.store.rows import read_first, read_queues
from trioboss.store.sending import SendVerbs, require_key

__all__ = ["LoadVerbs"]


class _Road(enum.Enum):
    """How a job gets in: by COPY where nothing is unique, else through staging; throttled ones one by one."""

    COPY = enum.auto()
    STAGING = enum.auto()
    SEND = enum.auto()


@attrs.frozen
class _Item:
    road: _Road
    id: UUID
    data: str | None
    job: NewJob | None
    """None for a job without options."""


@attrs.frozen
class LoadVerbs:
    """Insert many jobs. The conversation needs a transaction that is open around it."""

    _context: Context

    def insert(self, name: str, jobs: Iterable[NewJob | Mapping[str, Any]]) -> Conversation[list[UUID]]:
        """Insert all jobs, or none if one of them is bad; return the ids of those that the policy let in."""
        check_name("queue", name)
        queue = yield from self._context.know(name)
        dead_letters: set[str] = set()
        inserted: list[UUID] = []
        items = self._items(queue, jobs, dead_letters)
        for road, group in groupby(items, key=lambda item: item.road):
            if road is _Road.COPY:
                inserted += yield from self._copy(queue, group)
            elif road is _Road.STAGING:
                inserted += yield from self._stage(queue, group)
            else:
                inserted += yield from self._send(queue, group)
        for dead_letter in sorted(dead_letters):
            found = read_queues((yield Flush((self._context.step("get_queues", queue=dead_letter),))))
            if not found:
                raise UnknownQueue(dead_letter)
        return inserted

    def _items(
        self, queue: Queue, jobs: Iterable[NewJob | Mapping[str, Any]], dead_letters: set[str]
    ) -> Iterator[_Item]:
        for place, given in enumerate(jobs):
            try:
                item = self._item(queue, given)
            except PayloadError as error:
                raise PayloadError(f"jobs[{place}].{error.path}", error.problem) from None
            except (UsageError, TypeError) as error:
                raise UsageError(f"jobs[{place}]: {error}") from None
            if item.job is not None and item.job.dead_letter is not None:
                dead_letters.add(item.job.dead_letter)
            yield item

    def _item(self, queue: Queue, given: NewJob | Mapping[str, Any]) -> _Item:
        if isinstance(given, NewJob):
            job: NewJob | None = given
            data = given.data
        else:
            options = dict(given)
            data = options.pop("data", None)
            job = NewJob.from_options(None, options) if options else None
        require_key(queue, job or _PLAIN)
        text = None if data is None else encode(data, "data", self._context.max_bytes)
        id = UUID(str(job.id)) if job is not None and job.id else make_id()
        return _Item(_road(queue, job), id, text, job)

    def _copy(self, queue: Queue, items: Iterable[_Item]) -> Conversation[list[UUID]]:
        ((now,),) = read_first((yield Flush((self._context.step("read_clock"),))))
        rows = JobRows(queue, now)
        ids: list[UUID] = []

        def written() -> Iterator[bytes]:
            for item in items:
                ids.append(item.id)
                yield rows.write(item.id, item.data, item.job)

        statement = self._context.catalog.get("copy_jobs", queue.table_name)
        yield Copy(statement.text, blocks(written()))
        return ids

    def _stage(self, queue: Queue, items: Iterable[_Item]) -> Conversation[list[UUID]]:
        load = make_id()
        rows = StagingRows(load)
        given: list[UUID] = []

        def written() -> Iterator[bytes]:
            for item in items:
                if item.job is not None and item.job.id is not None:
                    given.append(item.id)
                yield rows.write(item.id, item.data, item.job or _PLAIN)

        yield Copy(self._context.catalog.get("copy_staging").text, blocks(written()))
        release = self._context.step("release_staged", queue.table_name, queue=queue.name, load=load)
        unless_ended = SendVerbs(self._context).drop_if_ended(queue, given)
        results = yield Flush((release, unless_ended))
        dropped = {id for (id,) in read_rows(results[0][1])}
        return [id for (id,) in read_rows(results[0][0]) if id not in dropped]

    def _send(self, queue: Queue, items: Iterable[_Item]) -> Conversation[list[UUID]]:
        verbs = SendVerbs(self._context)
        ids: list[UUID] = []
        for item in items:
            sent = yield from verbs.send_encoded(
                queue.name, item.job or _PLAIN, item.id, item.data, own=False
            )
            if sent is not None:
                ids.append(sent)
        return ids


_PLAIN = NewJob()


def _road(queue: Queue, job: NewJob | None) -> _Road:
    if job is not None and job.singleton_seconds is not None:
        return _Road.SEND
    if queue.policy is Policy.STANDARD and (job is None or job.id is None):
        return _Road.COPY
    return _Road.STAGING
