"""A handler written for asyncio runs through trio-asyncio; a plain function runs in a thread."""

import asyncio
import time

import trio

import trioboss


async def asyncio_handler(job: trioboss.AsyncioJob) -> str:
    await asyncio.sleep(0.01)
    await job.progress({"half": True})
    return "from asyncio"


def plain_handler(job: trioboss.ThreadJob) -> str:
    time.sleep(0.01)
    job.progress({"half": True})
    return "from a thread"


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("with-asyncio")
        await boss.create_queue("with-threads")
        await boss.work("with-asyncio", asyncio_handler, asyncio=True)
        await boss.work("with-threads", plain_handler, thread=True)
        for queue in ("with-asyncio", "with-threads"):
            id = await boss.send(queue)
            job = await boss.wait_for(queue, id, timeout=10)
            print(job.state, job.output, job.progress)


if __name__ == "__main__":
    trio.run(main)
