"""Live pages by server-sent events. A page is read once a second while at least one person has it open, for all of them
together; less often when many different pages are open, or when that takes long. The tasks that send it to the browsers
do that work; there are no others.
"""

import json
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing

import anyio
import attrs
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse
from starlette.types import Send

from trioboss.errors import TriobossError
from trioboss.postgres.errors import is_database_error

__all__ = ["EventStream", "LivePages"]

_INTERVAL = 1.0  # seconds between two readings of a page, at least
_READS = 5.0  # readings of all pages in a second, at most
_REST = 4.0  # at least so many times as long as it took to read a page, nobody reads it again
_LIFETIME = 300.0  # seconds of a stream: the browser connects again, and is authorized again
_SILENCE = 15.0  # seconds after which a comment keeps the connection open
_MOST_PAGES = 200  # different pages that are live at a time

ReadParts = Callable[[], Awaitable[Mapping[str, str]]]
"""Reads a page and returns its live parts: markup by the id of its element."""


class EventStream(StreamingResponse):
    """A stream of events. It ends with the connection, and not when the garbage collector finds it."""

    def __init__(self, messages: AsyncGenerator[str, None]) -> None:
        super().__init__(messages, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        self._messages = messages

    async def stream_response(self, send: Send) -> None:
        """Send the events until the browser is gone."""
        async with aclosing(self._messages):
            await super().stream_response(send)


@attrs.define(eq=False)
class _LivePage:
    read_parts: ReadParts
    pages: "LivePages"
    lock: anyio.Lock = attrs.field(factory=anyio.Lock)
    parts: Mapping[str, str] = attrs.field(factory=dict)
    read_at: float = float("-inf")
    took: float = 0.0
    """Seconds of the last reading: a page with much data, or of a busy database, is read less often."""
    error: Exception | None = None
    """The failure of the last reading."""
    viewers: int = 0

    @property
    def next_read(self) -> float:
        """When it is read again."""
        return self.read_at + max(self.pages.interval, _REST * self.took)

    async def read(self) -> Mapping[str, str]:
        """The parts as they are now: the first task that asks after the interval reads them, for all others, too. A
        failure is one for all of them, so that they do not try again one after the other.
        """
        async with self.lock:
            if anyio.current_time() >= self.next_read:
                begun, self.error = anyio.current_time(), None
                try:
                    self.parts = await self.read_parts()
                except Exception as error:
                    self.error = error
                self.read_at = anyio.current_time()
                self.took = self.read_at - begun
            if self.error is not None:
                raise self.error.with_traceback(None)
            return self.parts


@attrs.define(eq=False)
class LivePages:
    """The pages that somebody has open, by address."""

    _pages: dict[str, _LivePage] = attrs.field(factory=dict, init=False)

    def has_room_for(self, address: str) -> bool:
        """Whether that page can be live now. One that already is costs nothing more for another person."""
        return address in self._pages or len(self._pages) < _MOST_PAGES

    @property
    def interval(self) -> float:
        """Seconds between two readings of a page: longer when many different pages are open."""
        return max(_INTERVAL, len(self._pages) / _READS)

    @property
    def viewers(self) -> int:
        """How many people have a page open."""
        return sum(page.viewers for page in self._pages.values())

    async def follow(self, address: str, read_parts: ReadParts) -> AsyncGenerator[str, None]:
        """The stream of one browser: the parts of its page, whenever they have changed."""
        page = self._pages.setdefault(address, _LivePage(read_parts, self))
        page.viewers += 1
        try:
            async with aclosing(self._messages(page)) as messages:
                async for message in messages:
                    yield message
        finally:
            page.viewers -= 1
            if not page.viewers:
                self._pages.pop(address, None)

    async def _messages(self, page: _LivePage) -> AsyncGenerator[str, None]:
        sent: Mapping[str, str] = {}
        silent_since = begun = anyio.current_time()
        yield "retry: 2000\n\n"
        while anyio.current_time() < begun + _LIFETIME and not _is_server_stopping():
            try:
                parts = await page.read()
            except HTTPException as error:
                # The job or queue was deleted while its page was open. The script does not connect again.
                yield f"event: gone\ndata: {json.dumps(error.detail)}\n\n"
                return
            except Exception as error:
                if not isinstance(error, TriobossError) and not is_database_error(error):
                    raise
                yield "event: database-error\ndata: {}\n\n"
                await anyio.sleep(2 * _INTERVAL)
                continue
            changed = {name: markup for name, markup in parts.items() if sent.get(name) != markup}
            if changed:
                yield f"data: {json.dumps(changed)}\n\n"
            elif anyio.current_time() > silent_since + _SILENCE:
                yield ": still here\n\n"
            if changed or anyio.current_time() > silent_since + _SILENCE:
                silent_since = anyio.current_time()
            sent = parts
            await anyio.sleep(min(max(0.05, page.next_read - anyio.current_time()), 2 * _INTERVAL))


def _is_server_stopping() -> bool:
    """Whether uvicorn was told to stop. It waits until all connections are closed, and tells no application: without
    this a browser that has a page open would keep the server from stopping. Other servers end the streams themselves.
    """
    # Its handler of signals is a method of the server.
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return getattr(server, "should_exit", False) is True
