import trio

import trioboss


async def main() -> None:
    async with trioboss.open_boss() as boss:
        # begin blocked
        await boss.create_queue("orders", policy="key_strict_fifo", retry_limit=0)
        for order in ("order-1", "order-2"):
            for step in ("paid", "shipped"):
                await boss.send("orders", step, singleton_key=order)
        one, two = await boss.fetch("orders", batch_size=2)
        await boss.fail("orders", [one, two], "no stock")
        print(await boss.get_blocked_keys("orders"), await boss.fetch("orders"))

        await boss.retry("orders", one.id)  # the key goes on with the job that failed
        await boss.delete_job("orders", two.id)  # the key goes on without it
        print([(job.singleton_key, job.data) for job in await boss.fetch("orders", batch_size=2)])
        # end blocked


trio.run(main)
