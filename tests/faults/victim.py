"""A worker process for tests to kill or stop: `victim.py DSN QUEUE [PLACE]`. It prints what it does."""

import sys
import time

import trio
from pauses import POINTS

import trioboss
from trioboss.events import LeaseLostEvent


async def main(dsn: str, queue: str, place: str = "") -> None:
    """Work until killed."""
    if place:
        POINTS[place]()
    async with (
        trioboss.open_boss(dsn, migrate=False, supervise=False) as boss,
        trio.open_nursery() as nursery,
    ):

        async def handler(job: trioboss.Job) -> str:
            print("began", job.id, job.attempt, flush=True)
            if job.data == "long":
                with trio.CancelScope(shield=True):
                    await trio.sleep(0.5)
            return "victim"

        async def print_lost_leases() -> None:
            async with boss.events() as events:
                async for event in events:
                    if isinstance(event, LeaseLostEvent):
                        print("lost", event.id, flush=True)

        nursery.start_soon(print_lost_leases)
        await boss.work(queue, handler, concurrency=50)
        print("ready at", time.time(), flush=True)


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
