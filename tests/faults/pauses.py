"""Pause points: exact places at which a process stops until it is killed.

They wrap methods of trioboss in the process that is to be stopped, so trioboss itself has none.
"""

import time
from typing import Any

from trioboss.actors.dispatcher import Dispatcher
from trioboss.model.settle_and_claim import SettledAndClaimed
from trioboss.runtime.adapter import StoreAdapter


def stop_here(place: str) -> None:
    """Print the place and block the whole process, all tasks included."""
    print("paused", place, flush=True)
    time.sleep(3600)


def pause_after_claim() -> None:
    """Stop when a claim is committed and its jobs have arrived, before any handler is started."""
    receive = Dispatcher._receive

    def pausing(self: Dispatcher, answer: SettledAndClaimed, sent_at: float) -> None:
        if answer.claim is not None and answer.claim.jobs:
            stop_here("after claim")
        receive(self, answer, sent_at)

    Dispatcher._receive = pausing  # type: ignore[method-assign]


def pause_before_settling() -> None:
    """Stop when handlers have returned, before their completions are sent to the database."""
    settle_and_claim = StoreAdapter.settle_and_claim

    async def pausing(self: StoreAdapter, queue: str, settlements: Any, *rest: Any, **more: Any) -> Any:
        if settlements.completed:
            stop_here("before settling")
        return await settle_and_claim(self, queue, settlements, *rest, **more)

    StoreAdapter.settle_and_claim = pausing  # type: ignore[method-assign]


POINTS = {"after claim": pause_after_claim, "before settling": pause_before_settling}
