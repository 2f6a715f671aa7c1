import trio

import trioboss


async def charge(job: trioboss.RunningJob) -> str:
    print("attempt", job.attempt)
    if job.attempt < 3:
        raise ConnectionError("the bank does not answer")
    return "paid"


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("charges", retry_limit=5, retry_delay=0.05)
        await boss.work("charges", charge)

        id = await boss.send("charges", {"order": 1})
        job = await boss.wait_for("charges", id)
        print(job.state, "->", job.output, "after", job.retry_count, "retries")


trio.run(main)
