import trio

import trioboss


async def main() -> None:
    bank_is_up = False
    charged = trio.Event()

    async def charge(job: trioboss.RunningJob) -> None:
        if not bank_is_up:
            raise ConnectionError("the bank does not answer")
        charged.set()

    async with trioboss.open_boss() as boss:
        await boss.create_queue("payments-failed")
        await boss.create_queue("payments", retry_limit=1, dead_letter="payments-failed")
        await boss.work("payments", charge)

        id = await boss.send("payments", {"order": 1})
        job = await boss.wait_for("payments", id)
        print("failed:", job.output["message"])

        (dead,) = await boss.find_jobs("payments-failed", source_id=job.id)
        print("dead letter:", dead.data, "from", dead.source_queue)

        bank_is_up = True
        redriven = await boss.redrive("payments-failed")
        print("sent back:", redriven.destinations)
        await charged.wait()
        print("charged")


trio.run(main)
