"""Strict FIFO: the events of one order run one at a time, in the order of their commit; other orders do not wait.

An event that has failed for good blocks its order, until somebody retries it, or deletes it to go on without it.
"""

import trio

import trioboss

ORDERS = ("order-1", "order-2", "order-3")


async def main() -> None:
    in_stock = {"order-1"}
    done, results = trio.open_memory_channel[tuple[str | None, str]](12)

    async def handle(job: trioboss.RunningJob[str]) -> None:
        await trio.sleep(0.01)
        if job.data == "shipped" and job.singleton_key not in in_stock:
            raise LookupError("out of stock")
        await done.send((job.singleton_key, job.data))

    async with trioboss.open_boss() as boss:
        await boss.create_queue("orders", policy="key_strict_fifo", retry_limit=0)
        async with boss.transaction() as conn:
            for step in ("placed", "paid", "shipped", "closed"):
                for order in ORDERS:
                    await boss.send("orders", step, singleton_key=order, conn=conn)
        async with boss.events(trioboss.JobFailed) as failures:
            await boss.work("orders", handle, concurrency=3)
            failed = {event.blocked_key: event.id for event in [await anext(failures), await anext(failures)]}
        seen = [await results.receive() for _ in range(8)]
        print("blocked:", await boss.get_blocked_keys("orders"))

        await boss.delete_job("orders", failed["order-2"])  # go on without it: the buyer collects the goods
        in_stock.add("order-3")
        await boss.retry("orders", failed["order-3"])
        seen += [await results.receive() for _ in range(3)]
        print("still blocked:", await boss.get_blocked_keys("orders"))

    for order in ORDERS:
        print(order, [step for key, step in seen if key == order])


if __name__ == "__main__":
    trio.run(main)
