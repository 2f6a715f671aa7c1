"""Pause points: exact places at which a process stands still until it is killed.

They are put around methods from outside, in the process that asks for them, so the product has none and pays nothing.
"""

import time
from typing import Any

from trioboss.actors.dispatcher import Dispatcher
from trioboss.runtime.adapter import StoreAdapter


def stand_still(place: str) -> None:
    """Say so, and do nothing any more: nothing else in this process does, either."""
    print("paused", place, flush=True)
    time.sleep(3600)


def pause_after_claim() -> None:
    """The claim is committed and its answer has come; no handler has been started."""
    received = Dispatcher._received

    def pausing(self: Dispatcher, claim: Any, *rest: Any) -> None:
        if claim is not None and claim.jobs:
            stand_still("after claim")
        received(self, claim, *rest)

    Dispatcher._received = pausing  # type: ignore[method-assign]


def pause_before_settling() -> None:
    """Handlers have done their work; nothing of it is on its way to the database."""
    settle_and_claim = StoreAdapter.settle_and_claim

    async def pausing(self: StoreAdapter, queue: str, settlements: Any, *rest: Any, **more: Any) -> Any:
        if settlements.completed:
            stand_still("before settling")
        return await settle_and_claim(self, queue, settlements, *rest, **more)

    StoreAdapter.settle_and_claim = pausing  # type: ignore[method-assign]


POINTS = {"after claim": pause_after_claim, "before settling": pause_before_settling}
