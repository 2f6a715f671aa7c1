"""Without a worker: send, fetch and complete by hand, and what a stale lease does."""

import trio

import trioboss


async def main() -> None:
    async with trioboss.open_boss(supervise=False, schedule=False) as boss:
        await boss.create_queue("by-hand")
        await boss.send("by-hand", {"number": 1}, priority=5)

        (job,) = await boss.fetch("by-hand")
        print("fetched", job.data, "attempt", job.attempt)
        print(await boss.complete("by-hand", job, {"answer": 42}))
        try:
            await boss.complete("by-hand", job)
        except trioboss.LeaseLost as error:
            print("refused:", error)


if __name__ == "__main__":
    trio.run(main)
