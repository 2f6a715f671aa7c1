"""Hears the channel, keeps the presence of this boss, and looks for itself now and then."""

import random
import secrets

import attrs
import trio

from trioboss.actors.clock import DatabaseClock
from trioboss.actors.doorbell import Doorbell
from trioboss.actors.ports import ListeningConnection, ListenPort
from trioboss.actors.reporter import Reporter
from trioboss.actors.router import NotificationRouter
from trioboss.errors import DatabaseUnavailable
from trioboss.events import LeaderChanged, ListenerDown, ListenerUp, QueueWarning
from trioboss.machines.listening import ListenMachine

__all__ = ["Listener", "ListenerStatistics"]

# Others take the jobs of a boss whose presence they missed for `presence_grace`. It gives them up itself a
# little earlier, so that nobody runs them twice at the same time.
_MARGIN = 1.0


@attrs.frozen
class ListenerStatistics:
    """How the listener is doing."""

    listening: bool
    polling: bool
    leads: bool
    connections: int
    notifications: int
    polls: int


@attrs.define(eq=False)
class Listener:
    """One connection for the whole boss. After every (re)connect it listens first and looks then."""

    _port: ListenPort
    _router: NotificationRouter
    _clock: DatabaseClock
    _reporter: Reporter
    _presence_grace: float
    _candidate: bool
    """Whether this boss may do maintenance for all."""
    _polling: bool
    """Whether no words will come through, and it has to poll."""

    leads: bool = attrs.field(default=False, init=False)
    leads_changed: Doorbell = attrs.field(factory=Doorbell, init=False)
    _machine: ListenMachine = attrs.field(init=False)
    _listening: trio.Event = attrs.field(factory=trio.Event, init=False)
    _lost: Doorbell = attrs.field(factory=Doorbell, init=False)
    _token: str = attrs.field(default="", init=False)
    _waiting: trio.CancelScope | None = attrs.field(default=None, init=False)
    _connections: int = attrs.field(default=0, init=False)
    _notifications: int = attrs.field(default=0, init=False)
    _polls: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._machine = ListenMachine(polling=self._polling)
        if self._polling:
            self._warn_polling()

    def _warn_polling(self) -> None:
        message = "LISTEN does not work here, as behind a transaction pooler: polling every 2 s instead"
        self._reporter.report(QueueWarning(None, "notify_unavailable", message))

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

    async def wait_listening(self) -> None:
        """Until it hears the channel."""
        await self._listening.wait()

    def poll_now(self) -> None:
        """Look at once: there are new queues, or it is time for a leader."""
        self._machine.poll_now()
        if self._waiting is not None:
            self._waiting.cancel()

    async def run(self) -> None:
        """Listen for ever; connect again whenever the connection is lost."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._guard_presence)
            while True:
                try:
                    async with self._port.open_listening_connection() as connection:
                        await self._listen(connection)
                except DatabaseUnavailable as error:
                    self._lose(str(error))
                except Exception as error:
                    self._lose(f"{type(error).__name__}: {error}")
                    raise
                await trio.sleep(self._machine.failed(random.random()))

    async def _listen(self, connection: ListeningConnection) -> None:
        self._connections += 1
        self._machine.connected(trio.current_time())
        while True:
            now = trio.current_time()
            if self._machine.is_poll_due(now):
                await self._poll(connection)
            elif self._machine.is_probe_overdue(now):
                self._notice_silence()
            elif self._machine.is_ping_due(now):
                await connection.ping()
                self._machine.received(trio.current_time())
            else:
                await self._receive(connection)

    async def _receive(self, connection: ListeningConnection) -> None:
        """Until something else is due, or our own word has come back."""
        # One scope for many notifications: to open one for each would keep the dispatcher waiting that was just rung.
        with trio.CancelScope(deadline=self._machine.next()) as self._waiting:
            while not self._router.received_probe(self._token):
                notifications = await connection.receive()
                self._notifications += len(notifications)
                self._machine.received(trio.current_time())
                for notification in notifications:
                    self._router.receive(notification)
            self._machine.received_probe()
            self._up()
        self._waiting = None

    async def _poll(self, connection: ListeningConnection) -> None:
        self._token = secrets.token_hex(8)
        asked_at = trio.current_time()
        polled = await connection.poll(self._router.queues(), self._token, candidate=self._candidate)
        self._clock.set(polled.now, asked_at)
        self._polls += 1
        self._machine.polled(trio.current_time())
        self._set_leads(polled.leads)
        if self._machine.polling:
            self._up()
        for queue, delay in polled.due.items():
            self._router.ring(queue, delay or None, by="poll")

    def _up(self) -> None:
        """Our own word came back: now we hear everything that is said. What was said before, we look for."""
        if not self._listening.is_set():
            self._listening.set()
            self._router.ring_after_gap()
            self._reporter.report(ListenerUp())

    def _notice_silence(self) -> None:
        """The connection is good, but words do not come through."""
        if self._connections > 1 or self._listening.is_set():
            raise DatabaseUnavailable("the listener no longer hears its own words")
        self._machine.polling = True
        self._machine.poll_now()
        self._warn_polling()

    def _lose(self, reason: str) -> None:
        self._set_leads(False)
        if self._listening.is_set():
            self._listening = trio.Event()
            self._lost.ring()
        self._reporter.report(ListenerDown(reason))

    def _set_leads(self, leads: bool) -> None:
        if leads != self.leads:
            self.leads = leads
            self.leads_changed.ring()
            self._reporter.report(LeaderChanged(leads))

    async def _guard_presence(self) -> None:
        """If the connection does not come back in time, give up what others may take."""
        while True:
            await self._lost.wait()
            with trio.move_on_after(max(0.0, self._presence_grace - _MARGIN)) as patience:
                await self._listening.wait()
            if patience.cancelled_caught:
                self._router.fence()
