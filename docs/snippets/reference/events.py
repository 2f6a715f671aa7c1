import trio

import trioboss


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("greetings")

        async def greet(job: trioboss.RunningJob) -> None:
            await trio.lowlevel.checkpoint()

        await boss.work("greetings", greet)
        # begin events
        async with boss.events(trioboss.JobCompleted, trioboss.JobFailed) as events:
            await boss.send("greetings")
            async for event in events:
                print(type(event).__name__, event.queue, "attempt", event.attempt)
                break
        # end events


trio.run(main)
