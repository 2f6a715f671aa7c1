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

_PATIENCE = 5.0  # seconds a check may take
_RETRY_DELAY = 0.5  # seconds until it is tried again


@attrs.define(eq=False)
class Checker:
    """Asks the database, which alone knows: a word on the channel can be forged, and is only a hint."""

    _port: WorkPort
    _reporter: Reporter
    _doubted: dict[Running, CancelReason] = attrs.field(factory=dict, init=False)
    _bell: Doorbell = attrs.field(factory=lambda: Doorbell(PACE), init=False)

    def doubt(self, jobs: Iterable[Running], reason: CancelReason) -> None:
        """Check these leases soon; cancel, for this reason, those that are not held."""
        self._doubted |= dict.fromkeys(jobs, reason)
        if self._doubted:
            self._bell.ring()

    async def run(self) -> None:
        """Check what is doubted, all that came since the last answer in one statement."""
        while True:
            await self._bell.wait()
            doubted = {r: reason for r, reason in self._doubted.items() if not r.ended and r.reason is None}
            self._doubted = {}
            for running in superseded(doubted):
                running.cancel(CancelReason.LEASE_LOST)
                del doubted[running]
            try:
                with trio.fail_after(_PATIENCE):
                    held = await self._port.check(by_queue(doubted)) if doubted else set()
            except (DatabaseUnavailable, trio.TooSlowError) as error:
                self._reporter.report(ErrorEvent("lease check", str(error) or "no answer in time"))
                await trio.sleep(_RETRY_DELAY)
                self._doubted = doubted | self._doubted
                self._bell.ring()
                continue
            for running, reason in doubted.items():
                if running.job.id not in held:
                    running.cancel(reason)
