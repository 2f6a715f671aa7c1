import trio

import trioboss


async def greet(job: trioboss.RunningJob) -> str:
    return f"hello, {job.data['name']}"


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("greetings")
        await boss.work("greetings", greet)

        id = await boss.send("greetings", {"name": "world"})
        job = await boss.wait_for("greetings", id)
        print(job.state, "->", job.output)


trio.run(main)
