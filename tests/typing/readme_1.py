import trio

import trioboss


async def greet(job: trioboss.RunningJob) -> str:
    return f"hello, {job.data['name']}"


async def main() -> None:
    async with trioboss.open_boss() as boss:  # TRIOBOSS_DSN, DATABASE_URL, or an embedded Postgres
        await boss.create_queue("greetings", retry_limit=5, retry_backoff=True)
        await boss.work("greetings", greet, concurrency=10)

        id = await boss.send("greetings", {"name": "world"})
        job = await boss.wait_for("greetings", id)
        print(job.state, job.output)


trio.run(main)
