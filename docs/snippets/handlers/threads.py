import asyncio
import time

import trio

import trioboss


def shrink(job: trioboss.ThreadJob) -> str:
    time.sleep(0.01)  # blocks its thread, not the worker
    job.progress({"percent": 50})
    return f"{job.data} is smaller now"


async def ask(job: trioboss.AsyncioJob) -> str:
    await asyncio.sleep(0.01)
    return f"answer to {job.data}"


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("images")
        await boss.create_queue("questions")
        await boss.work("images", shrink, thread=True, concurrency=4)
        await boss.work("questions", ask, asyncio=True)
        for queue, data in (("images", "cat.png"), ("questions", "why?")):
            job = await boss.wait_for(queue, await boss.send(queue, data))
            print(job.output)


trio.run(main)
