"""Restarts actors that crash, or gives up."""

from collections.abc import Awaitable, Callable

import attrs
import trio

from trioboss.actors.reporter import Reporter
from trioboss.errors import SupervisorGaveUp
from trioboss.events import ActorRestarted
from trioboss.machines.restart import RestartMachine

__all__ = ["Supervisor", "SupervisorStatistics"]


@attrs.frozen
class SupervisorStatistics:
    """Which actors run, and how often each was restarted."""

    actors: tuple[str, ...]
    restarts: dict[str, int]


@attrs.define(eq=False)
class Supervisor:
    """Watches over the services of a boss. A crash is a bug or a surprise: it is reported, and survived a few times."""

    _nursery: trio.Nursery
    _reporter: Reporter
    _restarts: dict[str, int] = attrs.field(factory=dict, init=False)

    def start(self, name: str, actor: Callable[[], Awaitable[None]]) -> None:
        """Run an actor under supervision."""
        self._restarts[name] = 0
        self._nursery.start_soon(self._watch, name, actor, name=f"{name} (supervised)")

    def statistics(self) -> SupervisorStatistics:
        """Which actors run, and how often each was restarted."""
        return SupervisorStatistics(tuple(self._restarts), dict(self._restarts))

    async def _watch(self, name: str, actor: Callable[[], Awaitable[None]]) -> None:
        machine = RestartMachine()
        while True:
            try:
                await actor()
                return
            except Exception as error:
                if not machine.crashed(trio.current_time()):
                    raise SupervisorGaveUp(f"{name} crashed {machine.limit + 1} times in a row") from error
                self._restarts[name] += 1
                self._reporter.report(ActorRestarted(name, f"{type(error).__name__}: {error}"))
