"""Maintenance for all bosses, in the one that leads: rescues leases, takes samples, prunes, reports warnings."""

import math
import random
from collections.abc import Sequence

import attrs
import trio

from trioboss.actors.actor import Doorbell
from trioboss.actors.listener import Listener
from trioboss.actors.ports import MaintenancePort
from trioboss.actors.reporter import Reporter
from trioboss.errors import DatabaseUnavailable
from trioboss.events import ErrorEvent, JobsRecovered, QueueWarning
from trioboss.machines.maintenance import BusyNotifier, MaintenanceMachine

__all__ = ["Maintenance", "MaintenanceStatistics"]

_RESCUED = {
    "lost": "attempts that lost their worker, or its heartbeats: {}",
    "expired": "attempts that expired: {}",
    "released": "attempts left by a worker that has stopped, which are released: {}",
}
_MARGIN = 1.0  # seconds that a worker has to end an expired attempt itself
_REPEAT_WARNING = 60.0  # seconds until the same warning is reported again


@attrs.frozen
class MaintenanceStatistics:
    """The work that maintenance has done in this boss."""

    leads: bool
    rounds: int
    rescued: int


@attrs.define(eq=False)
class Maintenance:
    """Every boss has one. It works while its boss leads; otherwise it makes sure that some boss does."""

    _port: MaintenancePort
    _listener: Listener
    _boss_is_busy: Doorbell
    _warning_sizes_changed: Doorbell
    """Rung when a queue may have got a warning_queue_size, or another one."""
    _reporter: Reporter
    _busy: BusyNotifier
    _presence_grace: float
    _warning_interval: float = 5.0
    _machine: MaintenanceMachine = attrs.field(factory=MaintenanceMachine)
    _sample_due: Doorbell = attrs.field(factory=Doorbell, init=False)
    _prune_due: Doorbell = attrs.field(factory=Doorbell, init=False)
    _led: bool = attrs.field(default=False, init=False)
    _rounds: int = attrs.field(default=0, init=False)
    _rescued: int = attrs.field(default=0, init=False)

    def statistics(self) -> MaintenanceStatistics:
        """Its work so far."""
        return MaintenanceStatistics(self._listener.leads, self._rounds, self._rescued)

    async def run(self) -> None:
        """Run rounds, frequently while there are active jobs."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._receive_busy)
            nursery.start_soon(self._sample)
            nursery.start_soon(self._prune)
            nursery.start_soon(self._report_long_queues)
            while True:
                self._notice_election()
                if self._listener.is_polling:  # no notification tells of work: there may be some
                    self._machine.notified_of_work(trio.current_time())
                at = self._machine.next(self._listener.leads)
                if trio.current_time() < at:
                    await self._listener.leads_changed.wait_until(at)
                else:
                    await self._start_round()

    async def _receive_busy(self) -> None:
        while True:
            await self._boss_is_busy.wait()
            self._machine.notified_of_work(trio.current_time())
            self._listener.leads_changed.ring()

    def _notice_election(self) -> None:
        if self._listener.leads and not self._led:
            self._machine.elected(trio.current_time(), random.random())
            self._warning_sizes_changed.ring()
        self._led = self._listener.leads

    async def _start_round(self) -> None:
        self._machine.starts_round(trio.current_time())
        if not self._listener.leads:
            self._listener.poll_now()  # a poll of a candidate makes it the leader if there is none
            return
        try:
            await self._run_round()
        except DatabaseUnavailable as error:
            self._reporter.report(ErrorEvent("maintenance", str(error)))

    async def _run_round(self) -> None:
        warnings = self._machine.warnings_due(trio.current_time())
        # After an outage of the server everybody has the grace to come back before a boss that was faster takes jobs.
        certain = self._listener.listening_for >= self._presence_grace
        rescue = await self._port.rescue_leases(
            self._presence_grace, _MARGIN, warnings=warnings, certain=certain
        )
        now = trio.current_time()
        self._rounds += 1
        if warnings or self._listener.is_polling:
            self._warning_sizes_changed.ring()  # in case the notification of a change was lost
        self._machine.finished_round(now, rescue.active, rescue.next_expiry)
        for name, outcome, ids in rescue.ended:
            self._rescued += len(ids)
            self._reporter.report(JobsRecovered(name, ids, outcome))
        for warning in rescue.warnings:
            self._reporter.report(QueueWarning(*warning))
        rescued = [(name, outcome, _RESCUED[outcome].format(len(ids))) for name, outcome, ids in rescue.ended]
        await self._keep_warnings([*rescue.warnings, *rescued])
        if self._machine.starts_sampling(now):
            self._sample_due.ring()
        if self._machine.starts_pruning(now):
            self._prune_due.ring()
        if rescue.active and (message := self._busy.due_notification(now)) is not None:
            # Jobs may run for hours without a further claim; another boss still has to lead if this one dies.
            await self._port.notify(message)

    async def _keep_warnings(self, warnings: Sequence[tuple[str | None, str, str]]) -> None:
        """Keep warnings for operators. If that fails, the round goes on: leases are more urgent."""
        if not warnings:
            return
        try:
            await self._port.keep_warnings(warnings)
        except Exception as error:
            self._reporter.report(ErrorEvent("statistics", str(error)))

    async def _report_long_queues(self) -> None:
        """Report queues that are too long: at once, and again each minute while they are.

        The leader asks at intervals only while some queue has a warning_queue_size. Otherwise it asks once a minute,
        and when queues have changed: a boss at rest makes few statements.
        """
        reported: dict[str | None, float] = {}
        ask_at, not_before = math.inf, -math.inf
        while True:
            await self._warning_sizes_changed.wait_until(ask_at)
            await trio.sleep_until(not_before)
            ask_at = math.inf
            if not self._listener.leads:
                continue  # an election rings
            began = trio.current_time()
            not_before = ask_at = began + self._warning_interval
            try:
                found = await self._port.find_long_queues()
            except DatabaseUnavailable as error:
                self._reporter.report(ErrorEvent("maintenance", str(error)))
                continue
            now = trio.current_time()
            # To count a million jobs takes a while: it must not take a considerable part of the time.
            not_before = max(not_before, now + 20 * (now - began))
            ask_at = math.inf if found is None else not_before
            found = found or ()
            reported = {queue: reported[queue] for queue, _, _ in found if queue in reported}
            for queue, kind, message in found:
                if now - reported.get(queue, -math.inf) >= _REPEAT_WARNING:
                    reported[queue] = now
                    self._reporter.report(QueueWarning(queue, kind, message))
                    await self._keep_warnings([(queue, kind, message)])

    async def _sample(self) -> None:
        """Statistics, beside the rounds: leases must not wait for them, nor depend on them."""
        while True:
            await self._sample_due.wait()
            try:
                await self._port.sample()
            except Exception as error:
                # No fault in the statistics may count as a crash of maintenance.
                self._reporter.report(ErrorEvent("statistics", str(error)))

    async def _prune(self) -> None:
        """Retention, beside the rounds: there may be much to delete, and leases must not wait for that."""
        while True:
            await self._prune_due.wait()
            try:
                await self._port.prune()
            except DatabaseUnavailable as error:
                self._machine.failed_to_prune(trio.current_time())
                self._reporter.report(ErrorEvent("retention", str(error)))
