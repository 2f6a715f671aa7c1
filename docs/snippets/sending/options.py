from datetime import UTC, datetime, timedelta

import trio

import trioboss


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("messages")

        # begin later
        await boss.send("messages", "in an hour", start_after=3600)
        await boss.send("messages", "tomorrow", start_after=timedelta(days=1))
        await boss.send("messages", "in 2040", start_after=datetime(2040, 1, 1, tzinfo=UTC))
        await boss.send("messages", "now, before the others", priority=10)
        await boss.send("messages", "with options of its own", retry_limit=9, expire_in=60)
        # end later
        print([job.data for job in await boss.fetch("messages", batch_size=9)])

        # begin bulk
        rows = ({"data": {"number": number}, "priority": number % 2} for number in range(10_000))
        print(await boss.insert("messages", rows), "jobs in one commit")
        # end bulk


trio.run(main)
