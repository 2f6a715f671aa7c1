import trio

import trioboss

started, stopped = trio.Event(), trio.Event()


async def render(job: trioboss.RunningJob) -> None:
    try:
        started.set()
        await trio.sleep_forever()
    finally:
        print("cancelled because of", job.cancelled)
        stopped.set()


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("videos")
        await boss.work("videos", render)
        await boss.send("videos", "holiday.mp4")
        await started.wait()
        (job,) = await boss.find_jobs("videos", state="active")
        await boss.cancel("videos", job.id)  # from this process or from any other
        await stopped.wait()
        print((await boss.wait_for("videos", job.id)).state)


trio.run(main)
