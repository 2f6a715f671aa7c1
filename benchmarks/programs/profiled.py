"""trioboss's adapter, watched from inside: CPU samples (setting `sample`), or each job's steps (`trace`)."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from benchmarks.adapters.base import QUEUE, Hit, main
from benchmarks.adapters.pacing import Data
from benchmarks.adapters.trioboss import TriobossAdapter
from benchmarks.programs.link import now
from benchmarks.programs.sampler import Sampler
from trioboss.actors.router import NotificationRouter
from trioboss.model.settle_and_claim import SettledAndClaimed
from trioboss.runtime.adapter import StoreAdapter

__all__ = ["ProfiledAdapter"]


class Trace:
    """When each job passed each step, by the number in its payload."""

    def __init__(self) -> None:
        self.steps: dict[str, dict[int, float]] = {}
        self._heard = 0.0
        self._numbers: dict[UUID, int] = {}

    def note(self, step: str, job: int, at: float) -> None:
        """A job passed a step."""
        self.steps.setdefault(step, {})[job] = at

    def install(self) -> None:
        """Watch the two places that every job passes: the notification that arrives, and settle_and_claim."""
        receive, settle_and_claim = NotificationRouter.receive, StoreAdapter.settle_and_claim

        def watched_receive(router: NotificationRouter, notification: str) -> None:
            if notification.partition(" ")[0] == QUEUE:
                self._heard = now()
            receive(router, notification)

        async def watched_settle_and_claim(
            adapter: StoreAdapter, *arguments: Any, **options: Any
        ) -> SettledAndClaimed:
            asked = now()
            exchanged = await settle_and_claim(adapter, *arguments, **options)
            self._exchanged(exchanged, asked, now())
            return exchanged

        setattr(NotificationRouter, "receive", watched_receive)  # noqa: B010
        setattr(StoreAdapter, "settle_and_claim", watched_settle_and_claim)  # noqa: B010

    def _exchanged(self, exchanged: SettledAndClaimed, asked: float, answered: float) -> None:
        for id in exchanged.settled:
            if (number := self._numbers.pop(id, None)) is not None:
                self.note("settled", number, answered)
        for job in () if exchanged.claim is None else exchanged.claim.jobs:
            assert isinstance(job.data, dict)
            number = int(job.data["i"])  # type: ignore[arg-type]
            self._numbers[job.id] = number
            for step, at in (("heard", self._heard), ("asked", asked), ("answered", answered)):
                self.note(step, number, at)


class ProfiledAdapter(TriobossAdapter):
    """Works as its base does, and tells what it saw."""

    def __init__(self, dsn: str, settings: dict[str, Any]) -> None:
        super().__init__(dsn, settings)
        self._sampler = Sampler()
        self._trace = Trace()

    def findings(self) -> dict[str, Any]:
        """Samples, and steps."""
        return {**self._sampler.as_json(), "steps": self._trace.steps}

    async def send(self, data: Data) -> None:
        """Send one job, and note when the call returned."""
        await super().send(data)
        self._trace.note("returned", data["i"], now())

    async def work(self, hit: Hit, ready: Callable[[], None]) -> None:
        """One worker, watched."""
        if self.settings.get("trace"):
            self._trace.install()
        if self.settings.get("sample"):
            self._sampler.start()

        def noted_hit(data: Data) -> None:
            hit(data)
            self._trace.note("entered", data["i"], now())

        await super().work(noted_hit if self.settings.get("trace") else hit, ready)


if __name__ == "__main__":
    main(ProfiledAdapter)
