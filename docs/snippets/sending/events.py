import trio

import trioboss


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("invoices")
        await boss.create_queue("parcels")

        # begin publish
        await boss.subscribe("order-placed", "invoices")
        await boss.subscribe("order-placed", "parcels")
        ids = await boss.publish("order-placed", {"order": 1})
        # end publish
        print(len(ids), "jobs")

        ended = trio.Event()

        # begin complete
        async def after_invoice(job: trioboss.RunningJob) -> None:
            print("invoice", job.data["state"], job.data["request"]["data"], job.data["response"])
            ended.set()

        await boss.on_complete("invoices", after_invoice)
        # end complete

        async def write_invoice(job: trioboss.RunningJob) -> str:
            return "written"

        await boss.work("invoices", write_invoice)
        await ended.wait()


trio.run(main)
