"""Strict FIFO: the events of one order run one at a time, in the order of their commit; other orders do not wait."""

import trio

import trioboss


async def main() -> None:
    seen: list[tuple[str | None, str]] = []
    done = trio.Event()

    async def handle(job: trioboss.RunningJob[str]) -> None:
        await trio.sleep(0.01)
        seen.append((job.singleton_key, job.data))
        if len(seen) == 9:
            done.set()

    async with trioboss.open_boss() as boss:
        await boss.create_queue("orders", policy="key_strict_fifo")
        async with boss.transaction() as conn:
            for step in ("placed", "paid", "shipped"):
                for order in ("order-1", "order-2", "order-3"):
                    await boss.send("orders", step, singleton_key=order, conn=conn)
        await boss.work("orders", handle, concurrency=3)
        await done.wait()

    for order in ("order-1", "order-2", "order-3"):
        print(order, [step for key, step in seen if key == order])


if __name__ == "__main__":
    trio.run(main)
