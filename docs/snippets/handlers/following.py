import trio

import trioboss


async def copy(job: trioboss.RunningJob) -> str:
    for percent in (50, 100):
        await trio.sleep(0.05)
        await job.progress({"percent": percent})
    return "copied"


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("copies")
        id = await boss.send("copies", "disk-1")
        async with boss.follow("copies", id) as updates:
            await boss.work("copies", copy)
            async for update in updates:
                if update.progress or update.output:
                    print(update.state, update.progress, update.output)


trio.run(main)
