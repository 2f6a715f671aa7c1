"""What was heard on the channel → who wants to know."""

from uuid import UUID

import attrs

from trioboss.actors.doorbell import PACE, Doorbell
from trioboss.actors.running import Running
from trioboss.actors.worker import Worker
from trioboss.machines.attempt import CancelReason

__all__ = ["NotificationRouter"]


def _paced_bell() -> Doorbell:
    return Doorbell(PACE)


@attrs.define(eq=False)
class NotificationRouter:
    """The workers, watchers and services of one boss, by what they listen for.

    Words on the channel: a queue's name and the seconds until its job is due, 0 if it is ready; a queue's name alone,
    if anything may be new there; or a note that begins with *. What is not understood is ignored: anybody may speak.
    """

    workers: dict[UUID, Worker] = attrs.field(factory=dict, init=False)
    queues_changed: Doorbell = attrs.field(factory=_paced_bell, init=False)
    schedules_changed: Doorbell = attrs.field(factory=_paced_bell, init=False)
    somebody_is_busy: Doorbell = attrs.field(factory=_paced_bell, init=False)
    _waiters: dict[UUID, set[Doorbell]] = attrs.field(factory=dict, init=False)
    _probes: set[str] = attrs.field(factory=set, init=False)

    def receive(self, notification: str) -> None:
        """Pass on one word from the channel."""
        if notification.startswith("*"):
            self._receive_note(*notification[1:].partition(" ")[::2])
            return
        name, _, delay = notification.partition(" ")
        try:
            seconds = float(delay) if delay else None
        except ValueError:
            return
        self.ring(name, seconds, by="notify")

    def _receive_note(self, kind: str, about: str) -> None:
        if kind == "cancel":
            self._cancel(about)
        elif kind == "ended":
            self._tell_waiters(about)
        elif kind == "probe":
            self._probes.add(about)
        elif kind == "queues":
            self.queues_changed.ring()
        elif kind == "schedules":
            self.schedules_changed.ring()
        elif kind == "busy":
            self.somebody_is_busy.ring()

    def ring(self, queue: str, delay: float | None, by: str) -> None:
        """There is a job in a queue, in so many seconds; or anything may be new."""
        for worker in self.workers.values():
            if (dispatcher := worker.dispatchers.get(queue)) is not None:
                dispatcher.ring(delay, by)

    def ring_after_gap(self) -> None:
        """Words may have been missed: dispatchers mark themselves again and look, services look, too."""
        for worker in self.workers.values():
            worker.reconnected()
        for bells in self._waiters.values():
            for bell in bells:
                bell.ring()
        for bell in (self.queues_changed, self.schedules_changed, self.somebody_is_busy):
            bell.ring()

    def fence(self) -> None:
        """Others may take our jobs by now: stop them all."""
        for worker in self.workers.values():
            for running in list(worker.slots.running):
                running.cancel(CancelReason.LEASE_LOST)
            for dispatcher in worker.dispatchers.values():
                dispatcher.fence()

    def queues(self) -> list[str]:
        """All queues that some worker dispatches."""
        return sorted({name for worker in self.workers.values() for name in worker.dispatchers})

    def running(self) -> list[Running]:
        """All leases of this boss."""
        return [running for worker in self.workers.values() for running in worker.slots.running]

    def received_probe(self, token: str) -> bool:
        """Whether our own word came back; asked once."""
        heard = token in self._probes
        self._probes.clear()
        return heard

    def add_waiter(self, id: UUID) -> Doorbell:
        """A bell that rings when the job has ended, or when it is time to look again."""
        bell = _paced_bell()
        self._waiters.setdefault(id, set()).add(bell)
        return bell

    def remove_waiter(self, id: UUID, bell: Doorbell) -> None:
        """No longer."""
        bells = self._waiters.get(id, set())
        bells.discard(bell)
        if not bells:
            self._waiters.pop(id, None)

    def _tell_waiters(self, about: str) -> None:
        for bell in self._waiters.get(_parse_id(about) or UUID(int=0), ()):
            bell.ring()

    def _cancel(self, about: str) -> None:
        id = _parse_id(about)
        for worker in self.workers.values():
            meant = [running for running in worker.slots.running if running.job.id == id]
            worker.checker.check(meant, CancelReason.CANCELLED)
            if not meant:
                for dispatcher in worker.dispatchers.values():
                    dispatcher.cancelled_elsewhere()


def _parse_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
