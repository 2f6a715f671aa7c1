import trio

import trioboss


async def main() -> None:
    async with trioboss.open_boss() as boss:
        # begin blocked
        await boss.create_queue("orders", policy="key_strict_fifo", retry_limit=0)
        for step in ("paid", "shipped"):
            await boss.send("orders", step, singleton_key="order-123")
        (job,) = await boss.fetch("orders")
        await boss.fail("orders", job, "no stock")

        print(await boss.get_blocked_keys("orders"), await boss.fetch("orders"))
        await boss.retry("orders", job.id)  # or boss.delete_job("orders", job.id)
        (again,) = await boss.fetch("orders")
        await boss.complete("orders", again)
        print(again.data, [job.data for job in await boss.fetch("orders")])
        # end blocked


trio.run(main)
