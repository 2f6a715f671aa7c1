"""The smallest program: a queue, a worker, a job, its result."""

import trio

import trioboss


async def greet(job: trioboss.RunningJob) -> str:
    return f"hello, {job.data['name']}"


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("greetings")
        await boss.work("greetings", greet)

        id = await boss.send("greetings", {"name": "world"})
        job = await boss.wait_for("greetings", id, timeout=10)
        print(job.state, job.output)


if __name__ == "__main__":
    trio.run(main)
