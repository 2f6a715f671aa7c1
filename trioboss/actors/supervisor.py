"""Restarts actors that crash, and gives up when they crash too often."""

from collections import Counter
from collections.abc import Awaitable, Callable

import attrs
import trio

from trioboss.actors.reporter import Reporter
from trioboss.errors import SupervisorGaveUp
from trioboss.events import ActorRestarted
from trioboss.machines.restart import RestartMachine
from trioboss.model.described_error import error_line

__all__ = ["Supervisor", "SupervisorStatistics"]


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
                supervised.restarts += 1
                self._reporter.report(ActorRestarted(name, _describe(error)))


def _describe(error: BaseException) -> str:
    """The cause of a crash: of a group, the exceptions in it, and not "1 sub-exception"."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(map(_describe, error.exceptions)))
    return error_line(error)
