"""The base of every actor: a doorbell that wakes it, and a supervisor that restarts it when it crashes."""

import math
from collections import Counter
from collections.abc import Awaitable, Callable

import attrs
import trio

from trioboss.actors.reporter import Reporter
from trioboss.errors import SupervisorGaveUp
from trioboss.events import ActorRestarted
from trioboss.machines.restart import RestartMachine
from trioboss.model.described_error import error_line

__all__ = ["PACE", "Doorbell", "Supervisor", "SupervisorStatistics"]

PACE = 0.05
"""Seconds between wake-ups by a doorbell that notifications ring: every client of the database can send them."""


@attrs.define(eq=False)
class Doorbell:
    """Wakes one waiter, once, however often it was rung before; with a ``pace``, not more often than that."""

    _pace: float = 0.0
    _woke_at: float = attrs.field(default=-math.inf, init=False)
    _rung: trio.Event = attrs.field(factory=trio.Event, init=False)

    def ring(self) -> None:
        """Wake the task that waits, or the next one that will."""
        self._rung.set()

    async def wait(self) -> None:
        """Wait until it was rung since the last wait."""
        await self._rung.wait()
        # Rings during the pause belong to this wake-up: the waiter reads everything after it.
        if self._pace:
            await trio.sleep_until(self._woke_at + self._pace)
            self._woke_at = trio.current_time()
        self._rung = trio.Event()

    async def wait_until(self, deadline: float) -> bool:
        """Wait until it is rung, or until that time; return whether it was rung."""
        if deadline == math.inf:  # the most frequent case, and a scope costs more than the wait
            await self.wait()
            return True
        with trio.move_on_at(deadline):
            await self.wait()
            return True
        return False


@attrs.frozen
class SupervisorStatistics:
    """Which actors run, and how often each was restarted."""

    actors: tuple[str, ...]
    restarts: dict[str, int]


@attrs.define(eq=False)
class _Supervised:
    """An actor that runs. Two may have the same name while the first one is ending."""

    name: str
    restarts: int = 0


@attrs.define(eq=False)
class Supervisor:
    """Runs actors. A crash is a bug: it is reported, and the actor is restarted a few times."""

    _nursery: trio.Nursery
    _reporter: Reporter
    _actors: set[_Supervised] = attrs.field(factory=set, init=False)

    def start(self, name: str, actor: Callable[[], Awaitable[None]]) -> None:
        """Run an actor under supervision."""
        supervised = _Supervised(name)
        self._actors.add(supervised)
        self._nursery.start_soon(self._supervise, supervised, actor, name=f"{name} (supervised)")

    def statistics(self) -> SupervisorStatistics:
        """Which actors run, and how often each was restarted."""
        restarts: Counter[str] = Counter()
        for actor in self._actors:
            restarts[actor.name] += actor.restarts
        return SupervisorStatistics(
            tuple(sorted(actor.name for actor in self._actors)), dict(sorted(restarts.items()))
        )

    async def _supervise(self, supervised: _Supervised, actor: Callable[[], Awaitable[None]]) -> None:
        try:
            await self._keep_running(supervised, actor)
        finally:
            self._actors.discard(supervised)

    async def _keep_running(self, supervised: _Supervised, actor: Callable[[], Awaitable[None]]) -> None:
        machine, name = RestartMachine(), supervised.name
        while True:
            try:
                await actor()
                return
            except Exception as error:
                if not machine.crashed(trio.current_time()):
                    raise SupervisorGaveUp(
                        f"{name} crashed {machine.limit + 1} times within {machine.window:g} s"
                    ) from error
                # At once: the limit of crashes bounds the work, and jobs wait meanwhile.
                supervised.restarts += 1
                self._reporter.report(ActorRestarted(name, _describe(error)))


def _describe(error: BaseException) -> str:
    """The cause of a crash: of a group, the exceptions in it, and not "1 sub-exception"."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(map(_describe, error.exceptions)))
    return error_line(error)
