import trio

import trioboss

handled: list[str] = []
printer_is_broken = True


async def handle(job: trioboss.RunningJob) -> None:
    if printer_is_broken and job.data == "pack" and job.singleton_key == "order-1":
        raise RuntimeError("the label printer is broken")
    handled.append(f"{job.singleton_key} {job.data}")


async def main() -> None:
    global printer_is_broken
    async with trioboss.open_boss() as boss:
        await boss.create_queue("orders", policy="key_strict_fifo", retry_limit=0)
        ids = {}
        for step in ("pay", "pack", "ship"):
            for order in ("order-1", "order-2"):
                ids[order, step] = await boss.send("orders", step, singleton_key=order)
        await boss.work("orders", handle, concurrency=4)

        await boss.wait_for("orders", ids["order-2", "ship"])
        failed = await boss.wait_for("orders", ids["order-1", "pack"])
        print("handled:", sorted(handled))
        print("blocked:", await boss.get_blocked_keys("orders"))

        (waiting,) = await boss.find_jobs("orders", state="created")
        why = await boss.why("orders", waiting.id)
        print("order-1", waiting.data, "waits:", why.reason, why.behind == failed.id)

        printer_is_broken = False
        await boss.retry("orders", failed.id)
        await boss.wait_for("orders", waiting.id)
        print("then:", handled[-2:])


trio.run(main)
