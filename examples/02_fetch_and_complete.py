"""Without a worker: a program sends, fetches and completes a job itself, and a stale lease is refused."""

import trio

import trioboss


async def main() -> None:
    async with trioboss.open_boss(supervise=False, schedule=False) as boss:
        await boss.create_queue("sums")
        await boss.send("sums", {"number": 1}, priority=5)

        (job,) = await boss.fetch("sums")
        print("fetched", job.data, "attempt", job.attempt)
        print(await boss.complete("sums", job, {"answer": 42}))
        try:
            await boss.complete("sums", job)
        except trioboss.LeaseLost as error:
            print("refused:", error)


if __name__ == "__main__":
    trio.run(main)
