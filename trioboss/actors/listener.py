"""Receives notifications, keeps the presence of this boss, and polls now and then in case one was lost.

machines/listening.py decides when, and says how lost notifications are noticed; runtime/adapter.py has the connection
itself. router.py passes notifications on.
"""

import math
import random
import secrets

import attrs
import trio

from trioboss.actors.actor import Doorbell
from trioboss.actors.clock import DatabaseClock
from trioboss.actors.ports import ListeningConnection, ListenPort
from trioboss.actors.reporter import Reporter
from trioboss.actors.router import NotificationRouter
from trioboss.errors import DatabaseUnavailable, ServerDown
from trioboss.events import LeaderChanged, ListenerDown, ListenerUp, QueueWarning
from trioboss.machines.listening import POLLING_INTERVAL, PROBE_TIMEOUT, ListenMachine, OutageReports

__all__ = ["Listener", "ListenerStatistics"]

# Other bosses take the jobs of a boss that was away for `presence_grace` seconds. It gives them up this much earlier,
# so that no job runs twice at the same time.
_MARGIN = 1.0
_POLLING_WARNING = (
    "LISTEN does not work on this connection, as behind a transaction pooler: "
    f"polling every {POLLING_INTERVAL:g} s instead; connect workers directly for immediate starts"
)

_NOTIFY_WARNING = (
    "NOTIFY is not possible: the server's queue of notifications is full, or the role may not use pg_notify: "
    f"polling every {POLLING_INTERVAL:g} s until it is; end the session that listens and does not read"
)


@attrs.frozen
class ListenerStatistics:
    """How the listener is doing."""

    listening: bool
    polling: bool
    """Notifications do not arrive, or cannot be sent: the listener is in polling mode."""
    leads: bool
    connections: int
    notifications: int
    polls: int


@attrs.define(eq=False)
class Listener:
    """One connection for the whole boss. After every connect it listens first and polls then, so that no job is
    missed.
    """

    _port: ListenPort
    _router: NotificationRouter
    _clock: DatabaseClock
    _reporter: Reporter
    _presence_grace: float
    _candidate: bool
    """Whether this boss may do maintenance for all."""
    _is_pooled: bool
    """Whether it was found before the start that a pooler is in between, so that notifications do not arrive."""

    leads: bool = attrs.field(default=False, init=False)
    leads_changed: Doorbell = attrs.field(factory=Doorbell, init=False)
    _machine: ListenMachine = attrs.field(init=False)
    _outage_reports: OutageReports = attrs.field(factory=OutageReports, init=False)
    _listening: trio.Event = attrs.field(factory=trio.Event, init=False)
    _listening_since: float = attrs.field(default=math.inf, init=False)
    _absent_at: float = attrs.field(default=math.inf, init=False)
    """When the jobs of this boss have to be given up, unless the database answers before."""
    _absent_sooner: Doorbell = attrs.field(factory=Doorbell, init=False)
    _token: str = attrs.field(default="", init=False)
    """Of the last probe."""
    _receiving: trio.CancelScope | None = attrs.field(default=None, init=False)
    _connections: int = attrs.field(default=0, init=False)
    _notifications: int = attrs.field(default=0, init=False)
    _polls: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._machine = ListenMachine(polling=self._is_pooled)
        if self._is_pooled:
            self._warn_polling()

    @property
    def is_polling(self) -> bool:
        """Whether the listener is in polling mode: notifications do not arrive."""
        return self._machine.polling

    def statistics(self) -> ListenerStatistics:
        """How it is doing now."""
        return ListenerStatistics(
            self._listening.is_set(),
            self._machine.polling,
            self.leads,
            self._connections,
            self._notifications,
            self._polls,
        )

    @property
    def listening_for(self) -> float:
        """Seconds since the connection was made; 0 without one."""
        return trio.current_time() - self._listening_since if self._listening.is_set() else 0.0

    async def wait_listening(self) -> None:
        """Wait until notifications arrive, or polling mode is on."""
        await self._listening.wait()

    def poll_now(self) -> None:
        """Poll at once: there are new queues, or a leader is missing."""
        self._machine.poll_now()
        if self._receiving is not None:
            self._receiving.cancel()

    async def run(self) -> None:
        """Listen for ever; reconnect whenever the connection is lost."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._guard_presence)
            while True:
                down = False
                try:
                    async with self._port.open_listening_connection(self._router.registrations) as connection:
                        await self._listen(connection)
                except DatabaseUnavailable as error:
                    down = isinstance(error, ServerDown)
                    self._disconnected(str(error), down=down)
                except Exception as error:
                    self._disconnected(f"{type(error).__name__}: {error}")
                    raise
                await trio.sleep(self._machine.failed(random.random(), down=down))

    async def _listen(self, connection: ListeningConnection) -> None:
        self._connections += 1
        self._machine.connected(trio.current_time())
        while True:
            now = trio.current_time()
            if self._machine.is_poll_due(now):
                await self._poll(connection)
            elif self._machine.is_probe_overdue(now):
                self._miss_probe()
            elif self._machine.is_ping_due(now):
                await connection.ping()
                self._machine.received(trio.current_time())
            else:
                await self._receive(connection)

    async def _receive(self, connection: ListeningConnection) -> None:
        """Pass notifications on, until something else is due or the probe has arrived."""
        # One scope for many notifications: one for each would delay the dispatcher that was just rung.
        with trio.CancelScope(deadline=self._machine.next()) as self._receiving:
            while not self._router.take_probe(self._token):
                notifications = await connection.receive()
                self._notifications += len(notifications)
                self._machine.received(trio.current_time())
                for notification in notifications:
                    self._router.receive(notification)
            self._machine.received_probe()
            self._connected()
        self._receiving = None

    async def _poll(self, connection: ListeningConnection) -> None:
        self._token = secrets.token_hex(8)
        asked_at = trio.current_time()
        result = await connection.poll(
            self._router.queues(),
            self._token,
            candidate=self._candidate,
            registrations=self._router.registrations(),
        )
        self._clock.set(result.now, asked_at)
        if self._is_pooled:
            # The poll has written `seen_on`. The leader counts this boss as gone after the grace, and as dead after the
            # grace again (rescue_leases.sql).
            self._set_absent_at(asked_at + 2 * self._presence_grace)
        self._polls += 1
        was_polling = self._machine.polling
        self._machine.polled(trio.current_time(), notified=result.notified)
        if self._machine.polling and not was_polling:
            self._reporter.report(QueueWarning(None, "notify_unavailable", _NOTIFY_WARNING))
        self._set_leads(result.leads)
        if self._machine.polling:
            self._connected()
        for queue, delay in result.due.items():
            self._router.ring(queue, delay or None, by="poll")

    def _connected(self) -> None:
        """The probe has arrived, so every later notification will; or a poll was answered in polling mode. Earlier
        notifications may have been missed.
        """
        if not self._listening.is_set():
            self._listening.set()
            self._listening_since = trio.current_time()
            if not self._is_pooled:
                self._absent_at = math.inf  # the session holds the lock of our presence
            self._router.reconnected()
            after = self._outage_reports.ended(trio.current_time())
            self._reporter.report(ListenerUp(self._machine.polling, after))

    def _miss_probe(self) -> None:
        """The connection works, but the probe has not arrived."""
        if not self._machine.missed_probe():
            raise DatabaseUnavailable(f"no probe notification received for {PROBE_TIMEOUT:g} s, reconnecting")
        self._warn_polling()

    def _warn_polling(self) -> None:
        self._reporter.report(QueueWarning(None, "notify_unavailable", _POLLING_WARNING))

    def _disconnected(self, reason: str, *, down: bool = False) -> None:
        self._set_leads(False)
        was_listening = self._listening.is_set()
        if was_listening:
            self._listening = trio.Event()
        # While no server runs, no leader is connected either, and a leader has to be connected for the grace before it
        # takes jobs of other bosses: the grace begins anew. A pooler that does not run, or cannot connect, proves
        # nothing: other bosses may be connected without it.
        if not self._is_pooled and (was_listening or (down and self._absent_at < math.inf)):
            self._set_absent_at(trio.current_time() + self._presence_grace)
        seconds = self._outage_reports.failed(trio.current_time(), reason)
        if seconds is not None:
            self._reporter.report(ListenerDown(reason, seconds))

    def _set_leads(self, leads: bool) -> None:
        if leads != self.leads:
            self.leads = leads
            self.leads_changed.ring()
            self._reporter.report(LeaderChanged(leads))

    def _set_absent_at(self, others_may_take_at: float) -> None:
        before, self._absent_at = self._absent_at, others_may_take_at - min(_MARGIN, self._presence_grace)
        if self._absent_at < before:
            self._absent_sooner.ring()

    async def _guard_presence(self) -> None:
        """Give up all jobs if the database has not answered before other bosses may take them."""
        while True:
            if trio.current_time() < self._absent_at:
                await self._absent_sooner.wait_until(self._absent_at)
                continue
            self._absent_at = math.inf
            if self._listening.is_set():
                self._listening = trio.Event()  # so that the next answer counts as a new connection
            self._router.presence_lost()
