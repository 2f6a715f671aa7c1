"""Asks the database whether leases are still held. The callers, in worker.py and dispatcher.py, have these reasons:

- a notification names a cancelled job (``*cancel``, cancel.sql and fragments/cancel_handlers.sql), or says that all
  jobs may have been deleted (``*leases``)
- such a notification came while a claim was under way, and the claim may have brought the job
- a queue was deleted, and its jobs with it
- the listener was disconnected: notifications may have been missed, and other bosses may have taken jobs
"""

from collections.abc import Iterable

import attrs
import trio

from trioboss.actors.actor import PACE, Doorbell
from trioboss.actors.attempts import Running, by_queue, superseded
from trioboss.actors.ports import WorkPort
from trioboss.actors.reporter import Reporter
from trioboss.errors import DatabaseUnavailable
from trioboss.events import ErrorEvent
from trioboss.machines.attempt import CancelReason

__all__ = ["LeaseChecker"]

_TIMEOUT = 5.0  # seconds that the database has to answer a check
_RETRY_DELAY = 0.5  # seconds until an unanswered check is repeated


@attrs.define(eq=False)
class LeaseChecker:
    """Cancels attempts whose lease is gone. A notification alone cancels nothing: anybody can send one."""

    _port: WorkPort
    _reporter: Reporter
    _requested: dict[Running, CancelReason] = attrs.field(factory=dict, init=False)
    _bell: Doorbell = attrs.field(factory=lambda: Doorbell(PACE), init=False)

    def check(self, attempts: Iterable[Running], reason: CancelReason) -> None:
        """Check these leases soon; cancel, for this reason, the attempts whose lease is not held."""
        self._requested |= dict.fromkeys(attempts, reason)
        if self._requested:
            self._bell.ring()

    async def run(self) -> None:
        """Check what is requested: all that came since the last answer, in one statement."""
        while True:
            await self._bell.wait()
            requested = {
                running: reason for running, reason in self._requested.items() if running.is_uncancelled
            }
            self._requested = {}
            for running in superseded(requested):
                running.cancel(CancelReason.LEASE_LOST)
                del requested[running]
            try:
                with trio.fail_after(_TIMEOUT):
                    held = await self._port.check(by_queue(requested)) if requested else set()
            except (DatabaseUnavailable, trio.TooSlowError) as error:
                self._reporter.report(
                    ErrorEvent("lease check", str(error) or f"no answer within {_TIMEOUT:g} s")
                )
                # Asked again until there is an answer: without it a cancelled job would run to its end.
                await trio.sleep(_RETRY_DELAY)
                self._requested = requested | self._requested
                self._bell.ring()
                continue
            for running, reason in requested.items():
                if running.job.id not in held:
                    running.cancel(reason)
