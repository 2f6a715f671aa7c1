import asyncio

import trioboss


async def main() -> None:
    with trioboss.SyncBoss() as boss:
        await asyncio.to_thread(boss.create_queue, "aio-orders")
        await asyncio.gather(
            *(asyncio.to_thread(boss.send, "aio-orders", {"number": number}) for number in range(5))
        )
        print(await asyncio.to_thread(boss.get_queue_size, "aio-orders"), "jobs")


asyncio.run(main())
