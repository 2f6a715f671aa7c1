"""Are these jobs still ours? Asked when somebody says otherwise, and when words may have been missed."""

from collections.abc import Iterable

import attrs
import trio

from trioboss.actors.doorbell import PACE, Doorbell
from trioboss.actors.ports import WorkPort
from trioboss.actors.reporter import Reporter
from trioboss.actors.running import CancelReason, Running, by_queue, superseded
from trioboss.errors import DatabaseUnavailable
from trioboss.events import ErrorEvent

__all__ = ["Checker"]

_TIMEOUT = 5.0  # seconds a check may take
_RETRY_DELAY = 0.5  # seconds until it is tried again


@attrs.define(eq=False)
class Checker:
    """Asks the database, which alone knows: a word on the channel can be forged, and is only a hint."""

    _port: WorkPort
    _reporter: Reporter
    _unchecked: dict[Running, CancelReason] = attrs.field(factory=dict, init=False)
    _bell: Doorbell = attrs.field(factory=lambda: Doorbell(PACE), init=False)

    def check(self, jobs: Iterable[Running], reason: CancelReason) -> None:
        """Check these leases soon; cancel, for this reason, those that are not held."""
        self._unchecked |= dict.fromkeys(jobs, reason)
        if self._unchecked:
            self._bell.ring()

    async def run(self) -> None:
        """Check what is unchecked, all that came since the last answer in one statement."""
        while True:
            await self._bell.wait()
            unchecked = {
                r: reason for r, reason in self._unchecked.items() if not r.ended and r.reason is None
            }
            self._unchecked = {}
            for running in superseded(unchecked):
                running.cancel(CancelReason.LEASE_LOST)
                del unchecked[running]
            try:
                with trio.fail_after(_TIMEOUT):
                    held = await self._port.check(by_queue(unchecked)) if unchecked else set()
            except (DatabaseUnavailable, trio.TooSlowError) as error:
                self._reporter.report(ErrorEvent("lease check", str(error) or "no answer in time"))
                await trio.sleep(_RETRY_DELAY)
                self._unchecked = unchecked | self._unchecked
                self._bell.ring()
                continue
            for running, reason in unchecked.items():
                if running.job.id not in held:
                    running.cancel(reason)
