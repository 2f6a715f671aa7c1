"""Sends at the same time share a commit.

A send that finds none of its queue under way goes at once. Those that come while it is under way wait in line, and
leave together, in one statement: so the more there are, the less each costs, and one alone waits for nobody.

The word that wakes workers follows the commit of a statement. One alone after a pause is quicker: it takes the word
along in its own transaction, which would hold up everybody's words if all did so all the time.
"""

import enum
import math
from uuid import UUID

import attrs
import trio

from trioboss.errors import DatabaseUnavailable
from trioboss.model.job import NewJob, make_id
from trioboss.model.payload import Json
from trioboss.postgres import Pool
from trioboss.postgres.executor import execute
from trioboss.postgres.operation import Operation
from trioboss.store import Store

__all__ = ["SendBatcher"]

_MOST_LETTERS = 200
_MOST_CHARACTERS = 1_000_000
_PAUSE = 0.002  # seconds after the end of the last of them until one counts as alone
_CANCEL_GRACE = 5.0  # seconds that a letter under way is waited for in a cancelled scope


class _Fate(enum.Enum):
    WAITING = enum.auto()
    LEADS = enum.auto()
    SENT = enum.auto()
    FAILED = enum.auto()


@attrs.define(eq=False)
class _Letter:
    """A job on its way: its id, its data as JSON text, and what became of it."""

    id: UUID
    data: str | None
    fate: _Fate = _Fate.WAITING
    error: BaseException | None = None
    _told: trio.Event = attrs.field(factory=trio.Event)

    async def wait(self) -> None:
        await self._told.wait()

    def tell(self, fate: _Fate, error: BaseException | None = None) -> None:
        self.fate, self.error = fate, error
        self._told.set()


@attrs.define(eq=False)
class SendBatcher:
    """Sends jobs that bring nothing but their data to standard queues.

    Invariant: a queue has a line while one of its senders, the leader, is at work. A leader takes as many letters
    along as may share a statement, and leaves the lead to the first that it left behind.
    """

    _pool: Pool
    _store: Store
    _lines: dict[str, list[_Letter]] = attrs.field(factory=dict, init=False)
    _ended_at: float = attrs.field(default=-math.inf, init=False)
    """When the last of them ended."""

    async def send(self, queue: str, data: Json) -> UUID | None:
        """Send a job and return its id."""
        letter = _Letter(make_id(), self._store.sending.write_data(data))
        line = self._lines.get(queue)
        if line is None:
            self._lines[queue] = []
            return await self._lead(queue, letter)
        line.append(letter)
        await self._wait(letter, line)
        if letter.fate is _Fate.LEADS:
            return await self._lead(queue, letter)
        if letter.fate is _Fate.FAILED:
            return await self._send_alone(queue, letter)
        return letter.id

    async def _wait(self, letter: _Letter, line: list[_Letter]) -> None:
        try:
            await letter.wait()
        except trio.Cancelled:
            if letter in line:
                line.remove(letter)
                raise
            with trio.move_on_after(_CANCEL_GRACE, shield=True):
                await letter.wait()
            if letter.fate is not _Fate.SENT:
                raise

    async def _lead(self, queue: str, letter: _Letter) -> UUID | None:
        letters = [letter, *_take(self._lines[queue])]
        fate, failure = _Fate.FAILED, None
        try:
            if await execute(self._sending(queue, letters), self._pool):
                fate = _Fate.SENT
        except BaseException as error:
            failure = error
            if len(letters) == 1 or not isinstance(error, Exception):
                raise
        finally:
            for follower in letters[1:]:
                follower.tell(fate, failure)
            self._ended_at = trio.current_time()
            self._pass_on(queue)
        letter.error = failure
        return letter.id if fate is _Fate.SENT else await self._send_alone(queue, letter)

    def _sending(self, queue: str, letters: list[_Letter]) -> Operation[bool]:
        verbs = self._store.sending
        is_alone = len(letters) == len(self._lines) == 1
        if is_alone and trio.current_time() - self._ended_at >= _PAUSE:
            return verbs.send_and_wake(queue, letter=letters[0])
        return verbs.send_plain(queue, letters)

    def _pass_on(self, queue: str) -> None:
        line = self._lines[queue]
        if line:
            line.pop(0).tell(_Fate.LEADS)
        else:
            del self._lines[queue]

    async def _send_alone(self, queue: str, letter: _Letter) -> UUID | None:
        """Find out what is true of this one: the failure may have been another's.

        Under the same id, so that it is one job whatever became of the first try.
        """
        if isinstance(letter.error, DatabaseUnavailable):
            raise type(letter.error)(*letter.error.args) from letter.error
        job = NewJob(id=letter.id)
        verb = self._store.sending.send_encoded
        return await execute(verb(queue, job, letter.id, letter.data, own=True), self._pool)


def _take(line: list[_Letter]) -> list[_Letter]:
    """Take from the line what fits into one statement besides the leader's letter."""
    taken = size = 0
    for letter in line[:_MOST_LETTERS]:
        size += len(letter.data or "")
        if size > _MOST_CHARACTERS:
            break
        taken += 1
    letters = line[:taken]
    del line[:taken]
    return letters
