from uuid import UUID

import trio

import trioboss


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("invitations")
        await boss.create_queue("calls", policy="singleton")
        await boss.create_queue("moves", policy="key_strict_fifo", retry_limit=0)

        async def show(text: str, queue: str, id: UUID | None) -> None:
            assert id is not None  # these policies refuse no job
            print(f"{text}: {(await boss.why(queue, id)).reason}")

        id = await boss.send("invitations")
        await show("nobody works on the queue", "invitations", id)
        await boss.pause("invitations")
        await show("the queue is paused", "invitations", id)
        await boss.resume_queue("invitations")
        await show("it is due later", "invitations", await boss.send_after("invitations", None, 60))

        await boss.send("calls", singleton_key="ann")
        second = await boss.send("calls", singleton_key="ann")
        await boss.fetch("calls")  # the first one is active now
        await show("another job of its key runs", "calls", second)

        await boss.send("moves", singleton_key="ann")
        second = await boss.send("moves", singleton_key="ann")
        await boss.fail("moves", await boss.fetch("moves"))
        await show("the job before it has failed", "moves", second)

        started, done = trio.Event(), trio.Event()

        async def print_label(job: trioboss.Job) -> None:
            started.set()
            await done.wait()

        await boss.create_queue("labels")
        await boss.work("labels", print_label, concurrency=1)
        await boss.send("labels")
        await started.wait()
        await show("all slots are busy", "labels", await boss.send("labels"))
        done.set()


trio.run(main)
