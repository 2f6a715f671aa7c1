"""For all bosses, by the one that leads: ends leases that ran out or lost their worker, retention, warnings."""

import random

import attrs
import trio

from trioboss.actors.dispatcher import Presence
from trioboss.actors.doorbell import Doorbell
from trioboss.actors.listener import Listener
from trioboss.actors.ports import MaintenancePort
from trioboss.actors.reporter import Reporter
from trioboss.errors import DatabaseUnavailable
from trioboss.events import ErrorEvent, JobsRecovered, QueueWarning
from trioboss.machines.maintenance import MaintenanceMachine

__all__ = ["Maintenance", "MaintenanceStatistics"]

_MARGIN = 1.0  # seconds left to a worker to end an expired attempt itself


@attrs.frozen
class MaintenanceStatistics:
    """What maintenance has done in this boss."""

    leads: bool
    rounds: int
    recovered: int


@attrs.define(eq=False)
class Maintenance:
    """Every boss has one; it works while its boss leads, and otherwise sees to it that somebody does."""

    _port: MaintenancePort
    _listener: Listener
    _somebody_is_busy: Doorbell
    _reporter: Reporter
    _presence: Presence
    _presence_grace: float
    _machine: MaintenanceMachine = attrs.field(factory=MaintenanceMachine, init=False)
    _untidy: Doorbell = attrs.field(factory=Doorbell, init=False)
    _led: bool = attrs.field(default=False, init=False)
    _rounds: int = attrs.field(default=0, init=False)
    _recovered: int = attrs.field(default=0, init=False)

    def statistics(self) -> MaintenanceStatistics:
        """What it has done so far."""
        return MaintenanceStatistics(self._listener.leads, self._rounds, self._recovered)

    async def run(self) -> None:
        """Watch over all jobs, closely while there are any."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._hear_of_work)
            nursery.start_soon(self._tidy)
            while True:
                self._notice_election()
                at = self._machine.next(self._listener.leads)
                if trio.current_time() < at:
                    await self._listener.leads_changed.wait_until(at)
                else:
                    await self._start_round()

    async def _hear_of_work(self) -> None:
        while True:
            await self._somebody_is_busy.wait()
            self._machine.heard_of_work(trio.current_time())
            self._listener.leads_changed.ring()

    def _notice_election(self) -> None:
        if self._listener.leads and not self._led:
            self._machine.elected(trio.current_time(), random.random())
        self._led = self._listener.leads

    async def _start_round(self) -> None:
        self._machine.starts_round(trio.current_time())
        if not self._listener.leads:
            self._listener.look_now()
            return
        try:
            await self._round()
        except DatabaseUnavailable as error:
            self._reporter.report(ErrorEvent("maintenance", str(error)))

    async def _round(self) -> None:
        full = self._machine.wants_warnings(trio.current_time())
        watch = await self._port.watch(self._presence_grace, _MARGIN, full=full)
        now = trio.current_time()
        self._rounds += 1
        self._machine.watched(now, watch.active, watch.next_expiry)
        for name, outcome, ids in watch.ended:
            self._recovered += len(ids)
            self._reporter.report(JobsRecovered(name, ids, outcome))
        for warning in watch.warnings:
            self._reporter.report(QueueWarning(*warning))
        if self._machine.starts_tidying(now):
            self._untidy.ring()
        if watch.active and (word := self._presence.say(now)) is not None:
            # Jobs may run for hours without a further claim. The others have to watch out for us all the same.
            await self._port.announce(word)

    async def _tidy(self) -> None:
        """Retention, beside the rounds: there may be a lot to delete, and who died must not wait for that."""
        while True:
            await self._untidy.wait()
            try:
                await self._port.tidy()
            except DatabaseUnavailable as error:
                self._machine.failed_to_tidy(trio.current_time())
                self._reporter.report(ErrorEvent("retention", str(error)))
