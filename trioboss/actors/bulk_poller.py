"""Polls for the dispatchers of many queues at once, where each would have sent a claim of its own."""

from collections.abc import Iterable
from itertools import islice
from uuid import UUID

import attrs
import trio

from trioboss.actors.actor import Doorbell
from trioboss.actors.dispatcher import Dispatcher
from trioboss.actors.ports import WorkPort
from trioboss.actors.reporter import Reporter
from trioboss.errors import DatabaseUnavailable
from trioboss.events import ErrorEvent

__all__ = ["BULK_THRESHOLD", "BulkPoller"]

BULK_THRESHOLD = 20
"""From so many idle dispatchers on, one statement polls for all of them; fewer dispatchers claim by themselves."""
_RETRY_DELAY = 1.0  # seconds until a poll that failed is repeated
_CHUNK = 5_000  # queues in one statement, so that each answers in time


@attrs.define(eq=False)
class BulkPoller:
    """Sets the idle markers of a worker in many queues, and then finds which of them have a job to claim."""

    _worker: UUID
    _port: WorkPort
    _reporter: Reporter
    _waiting: dict[Dispatcher, None] = attrs.field(factory=dict, init=False)
    _bell: Doorbell = attrs.field(factory=Doorbell, init=False)

    def bulk_poll(self, dispatchers: Iterable[Dispatcher]) -> None:
        """Poll for these soon. Until then they only react to their doorbells."""
        for dispatcher in dispatchers:
            dispatcher.await_bulk_poll()
            self._waiting[dispatcher] = None
        self._bell.ring()

    async def run(self) -> None:
        """Poll for the dispatchers that wait for it."""
        while True:
            if not self._waiting:
                await self._bell.wait()
                continue
            chunk = list(islice(self._waiting, _CHUNK))
            for dispatcher in chunk:
                del self._waiting[dispatcher]
            try:
                await self._poll(chunk)
            except DatabaseUnavailable as error:
                self._reporter.report(ErrorEvent("bulk_poll", str(error)))
                # Their markers may be set or not: setting them again is harmless, to wait without one is not.
                self._waiting |= dict.fromkeys(chunk)
                await trio.sleep(_RETRY_DELAY)

    async def _poll(self, dispatchers: list[Dispatcher]) -> None:
        due = await self._port.bulk_poll(self._worker, [dispatcher.queue for dispatcher in dispatchers])
        for dispatcher in dispatchers:
            # A dispatcher that waits again was disconnected in the meantime, and its marker may be lost.
            if dispatcher not in self._waiting:
                dispatcher.bulk_polled(due.get(dispatcher.queue))
