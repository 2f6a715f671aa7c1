"""trioboss's adapter with instruments inside: CPU samples (setting `sample`) or each job's steps (`trace`)."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from benchmarks.adapters.base import QUEUE, Hit, main
from benchmarks.adapters.pacing import Data
from benchmarks.adapters.trioboss import TriobossAdapter
from benchmarks.programs.protocol import now
from benchmarks.programs.sampler import Sampler
from trioboss.actors.router import NotificationRouter
from trioboss.model.settle_and_claim import SettledAndClaimed
from trioboss.runtime.adapter import StoreAdapter

__all__ = ["ProfiledAdapter"]


class Trace:
    """When each job passed each step, by the number in its payload."""

    def __init__(self) -> None:
        self.steps: dict[str, dict[int, float]] = {}
        self._notified = 0.0
        self._numbers: dict[UUID, int] = {}

    def record(self, step: str, job: int, at: float) -> None:
        """Record that a job passed a step."""
        self.steps.setdefault(step, {})[job] = at

    def install(self) -> None:
        """Wrap the two calls that every job passes: the notification, and the settle-and-claim statement."""
        receive, settle_and_claim = NotificationRouter.receive, StoreAdapter.settle_and_claim

        def traced_receive(router: NotificationRouter, notification: str) -> None:
            if notification.partition(" ")[0] == QUEUE:
                self._notified = now()
            receive(router, notification)

        async def traced_settle_and_claim(
            adapter: StoreAdapter, *arguments: Any, **options: Any
        ) -> SettledAndClaimed:
            sent = now()
            result = await settle_and_claim(adapter, *arguments, **options)
            self._record_result(result, sent, now())
            return result

        setattr(NotificationRouter, "receive", traced_receive)  # noqa: B010
        setattr(StoreAdapter, "settle_and_claim", traced_settle_and_claim)  # noqa: B010

    def _record_result(self, result: SettledAndClaimed, sent: float, answered: float) -> None:
        for id in result.settled:
            if (number := self._numbers.pop(id, None)) is not None:
                self.record("settled", number, answered)
        for job in () if result.claim is None else result.claim.jobs:
            assert isinstance(job.data, dict)
            number = int(job.data["i"])
            self._numbers[job.id] = number
            for step, at in (("notified", self._notified), ("claim_sent", sent), ("claimed", answered)):
                self.record(step, number, at)


class ProfiledAdapter(TriobossAdapter):
    """Works as its base class does, and reports samples and steps."""

    def __init__(self, dsn: str, settings: dict[str, Any]) -> None:
        super().__init__(dsn, settings)
        self._sampler = Sampler()
        self._trace = Trace()

    def findings(self) -> dict[str, Any]:
        """Return the samples and the steps."""
        return {**self._sampler.as_json(), "steps": self._trace.steps}

    async def send(self, data: Data) -> None:
        """Send one job, and record when the call returned."""
        await super().send(data)
        self._trace.record("returned", data["i"], now())

    async def work(self, hit: Hit, ready: Callable[[], None]) -> None:
        """Run one instrumented worker."""
        if self.settings.get("trace"):
            self._trace.install()
        if self.settings.get("sample"):
            self._sampler.start()

        def traced_hit(data: Data) -> None:
            hit(data)
            self._trace.record("entered", data["i"], now())

        await super().work(traced_hit if self.settings.get("trace") else hit, ready)


if __name__ == "__main__":
    main(ProfiledAdapter)
