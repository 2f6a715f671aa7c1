"""Passes notifications of the channel on to the workers, completion waiters and services of one boss."""

from uuid import UUID

import attrs

from trioboss.actors.actor import PACE, Doorbell
from trioboss.actors.followers import Followers
from trioboss.actors.ports import Registration
from trioboss.actors.worker import Worker

__all__ = ["NotificationRouter"]


# At most one wake-up each PACE: a flood of forged notifications must not keep a service busy.
def _paced_bell() -> Doorbell:
    return Doorbell(PACE)


@attrs.define(eq=False)
class NotificationRouter:
    """The workers, completion waiters and services of one boss, by the notifications they are interested in.

    A notification is the name of a queue and the seconds until its job is due, 0 if it is ready; or the name of a queue
    alone, if anything may have changed there; or a message that begins with ``*``. Anything else is ignored: every
    client of the database can notify.
    """

    followers: Followers | None = None
    workers: dict[UUID, Worker] = attrs.field(factory=dict, init=False)
    queues_changed: Doorbell = attrs.field(factory=_paced_bell, init=False)
    warning_sizes_changed: Doorbell = attrs.field(factory=_paced_bell, init=False)
    """The same notification, ``*queues``, for maintenance: a queue may have another warning_queue_size."""
    schedules_changed: Doorbell = attrs.field(factory=_paced_bell, init=False)
    boss_is_busy: Doorbell = attrs.field(factory=_paced_bell, init=False)
    """Some boss has jobs."""
    _waiters: dict[UUID, set[Doorbell]] = attrs.field(factory=dict, init=False)
    _probes: set[str] = attrs.field(factory=set, init=False)

    # -- from the channel

    def receive(self, notification: str) -> None:
        """Pass one notification on."""
        if notification.startswith("*"):
            self._receive_message(*notification[1:].partition(" ")[::2])
            return
        name, _, delay = notification.partition(" ")
        # Any client can notify: what is no number is ignored, and a forged one costs a claim that finds nothing.
        try:
            seconds = float(delay) if delay else None
        except ValueError:
            return
        self.ring(name, seconds, by="notify")

    def _receive_message(self, kind: str, subject: str) -> None:
        match kind:
            case "cancel":
                self._cancel(subject)
            case "changed":
                self._ring_waiters(subject)
            case "follow" | "unfollow":
                self._follow(kind, subject)
            case "leases":
                for worker in self.workers.values():
                    worker.check_leases()
            case "probe":
                self._probes.add(subject)
            case "queues":
                # Two bells for one message: a doorbell wakes one task.
                self.queues_changed.ring()
                self.warning_sizes_changed.ring()
            case "schedules":
                self.schedules_changed.ring()
            case "busy":
                self.boss_is_busy.ring()

    def _cancel(self, subject: str) -> None:
        id = _parse_id(subject)
        if id is not None:
            for worker in self.workers.values():
                worker.cancelled_elsewhere(id)

    def _follow(self, kind: str, subject: str) -> None:
        id = _parse_id(subject)
        if id is None or self.followers is None:
            return
        if kind == "follow":
            self.followers.add(id)
        else:
            self.followers.remove(id)

    def _ring_waiters(self, subject: str) -> None:
        id = _parse_id(subject)
        if id is not None:
            for bell in self._waiters.get(id, ()):
                bell.ring()

    # -- from the listener

    def ring(self, queue: str, delay: float | None, by: str) -> None:
        """A job of a queue is due in so many seconds; 0: ready now; None: unknown change."""
        # Several workers of one process may serve a queue. Each has its own room, and its claim decides what it gets.
        for worker in self.workers.values():
            if (dispatcher := worker.dispatchers.get(queue)) is not None:
                dispatcher.ring(delay, by)

    def reconnected(self) -> None:
        """Notifications may have been missed: dispatchers set their idle markers again and claim, services read again,
        completion waiters read their jobs.
        """
        for worker in self.workers.values():
            worker.reconnected()
        for bells in self._waiters.values():
            for bell in bells:
                bell.ring()
        for bell in (
            self.queues_changed,
            self.warning_sizes_changed,
            self.schedules_changed,
            self.boss_is_busy,
        ):
            bell.ring()

    def presence_lost(self) -> None:
        """Other bosses may take the jobs of this one: cancel them all, and claim no more."""
        for worker in self.workers.values():
            worker.presence_lost()

    def queues(self) -> list[str]:
        """All queues that have a dispatcher in this boss."""
        return sorted({name for worker in self.workers.values() for name in worker.dispatchers})

    def registrations(self) -> list[Registration]:
        """All workers that other bosses have to see in the database."""
        return [worker.registration for worker in self.workers.values() if worker.is_registered]

    def take_probe(self, token: str) -> bool:
        """Whether the probe with this token has arrived since the last call."""
        # Other tokens are those of probes that were given up, or forged.
        arrived = token in self._probes
        self._probes.clear()
        return arrived

    # -- completion waiters

    def add_waiter(self, id: UUID) -> Doorbell:
        """A doorbell that rings when the job has ended, or when its end may have been missed."""
        bell = _paced_bell()
        self._waiters.setdefault(id, set()).add(bell)
        return bell

    def remove_waiter(self, id: UUID, bell: Doorbell) -> None:
        """Forget a doorbell."""
        bells = self._waiters.get(id, set())
        bells.discard(bell)
        if not bells:
            self._waiters.pop(id, None)


def _parse_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
