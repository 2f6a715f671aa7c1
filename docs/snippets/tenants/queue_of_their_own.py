import trio

import trioboss


async def main() -> None:
    done = trio.Event()

    async def handle(job: trioboss.RunningJob) -> None:
        if job.queue == "imports/small":
            done.set()
        else:
            await trio.sleep(0.01)

    async with trioboss.open_boss() as boss:
        await boss.work("imports/*", handle, concurrency=2)  # also queues that are created later
        for tenant in ("big", "small"):
            await boss.create_queue(f"imports/{tenant}", partition=tenant == "big")
        await boss.insert("imports/big", [{"data": n} for n in range(5000)])
        await boss.send("imports/small")
        await done.wait()
        left = await boss.get_queue_size("imports/big")
        print("the small tenant did not wait for the big one:", left > 1000)
        await boss.delete_queued_jobs("imports/big")


trio.run(main)
