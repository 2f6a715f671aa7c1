import trio

import trioboss

seen = trio.Event()


async def copy(job: trioboss.RunningJob) -> str:
    await job.progress({"percent": 50})
    await seen.wait()  # so that this program always prints the same
    return "copied"


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("copies")
        id = await boss.send("copies", "disk-1")
        async with boss.follow("copies", id) as updates:
            await boss.work("copies", copy)
            async for update in updates:
                if update.progress:
                    print(update.state, update.progress, update.output)
                    seen.set()


trio.run(main)
