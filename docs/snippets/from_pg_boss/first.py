import trio

import trioboss


async def handle(job: trioboss.RunningJob) -> dict[str, str]:
    return {"sent": job.data["to"]}  # the output; an exception is a failure


async def main() -> None:
    async with trioboss.open_boss() as boss:  # new PgBoss(…) and start(); stop() at the end of the block
        await boss.create_queue("email", retry_limit=5, retry_backoff=True)
        id = await boss.send("email", {"to": "ann@example.org"}, priority=3)
        await boss.send({"name": "email", "data": {"to": "bob@example.org"}, "options": {"priority": 1}})
        await boss.work("email", handle, concurrency=10)
        print((await boss.wait_for("email", id)).output)


trio.run(main)
