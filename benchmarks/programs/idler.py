"""A worker with nothing to do, on one queue or on many."""

import trio

import trioboss
from benchmarks.programs.link import Spec, emit, follow, now, read_spec

QUEUE = "idle/{}"


async def idle(spec: Spec) -> None:
    """Serve queues in which nothing is."""
    follow(lambda command: None)
    count = spec["queues"]

    async def handle(job: object) -> None:
        raise AssertionError("there are no jobs")

    began = now()
    async with trioboss.open_boss(spec["dsn"], migrate=False) as boss:
        await boss.work(QUEUE.format("*" if count > 1 else 0), handle, concurrency=10)
        emit("ready", seconds=now() - began)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(idle, read_spec())
