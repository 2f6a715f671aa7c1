import trio

import trioboss


async def main() -> None:
    order: list[str] = []
    done = trio.Event()

    async def build(job: trioboss.RunningJob) -> None:
        await trio.sleep(0.01)
        order.append(job.singleton_key or "")
        if len(order) == 22:
            done.set()

    async with trioboss.open_boss() as boss:
        await boss.create_queue("builds", policy="singleton")
        await boss.insert("builds", [{"singleton_key": "big"} for _ in range(20)])
        for tenant in ("small-1", "small-2"):
            await boss.send("builds", singleton_key=tenant)
        await boss.work("builds", build, concurrency=4)
        await done.wait()
    print("the small tenants are among the first ten:", {"small-1", "small-2"} <= set(order[:10]))


trio.run(main)
