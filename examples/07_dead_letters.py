"""Dead letters: a job that fails for good leaves a copy, which is sent back once the fault is mended."""

import trio

import trioboss


async def main() -> None:
    mended = False
    charged = trio.Event()

    async def charge(job: trioboss.RunningJob) -> None:
        if not mended:
            raise ConnectionError("the payment provider is down")
        charged.set()

    async with trioboss.open_boss() as boss:
        await boss.create_queue("payments-failed")
        await boss.create_queue("payments", retry_limit=1, dead_letter="payments-failed")
        await boss.work("payments", charge)

        id = await boss.send("payments", {"order": 1, "amount": 99})
        job = await boss.wait_for("payments", id, timeout=10)
        print("failed for good:", job.output["message"])

        (letter,) = await boss.fetch("payments-failed")
        print("dead letter of", letter.source_queue, letter.source_id == id, letter.data)
        mended = True
        async with boss.transaction() as conn:
            await boss.send("payments", letter.data, conn=conn)
            await boss.complete("payments-failed", letter, conn=conn)
        await charged.wait()
        print("charged")


if __name__ == "__main__":
    trio.run(main)
