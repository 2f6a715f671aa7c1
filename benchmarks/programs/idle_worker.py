"""A worker whose queues, one or many, stay empty."""

import trio

import trioboss
from benchmarks.programs.protocol import Spec, emit, handle_commands, now, read_spec

QUEUE = "idle/{}"


async def idle(spec: Spec) -> None:
    """Work on `spec["queues"]` empty queues until the harness closes standard input."""
    handle_commands(lambda command: None)
    count = spec["queues"]

    async def handle(job: object) -> None:
        raise AssertionError("the queues are empty")

    began = now()
    async with trioboss.open_boss(spec["dsn"], migrate=False) as boss:
        await boss.work(QUEUE.format("*" if count > 1 else 0), handle, concurrency=10)
        emit("ready", seconds=now() - began)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(idle, read_spec())
