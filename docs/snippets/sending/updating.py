import trio

import trioboss


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("drafts")

        # begin update
        await boss.send("drafts", {"text": "first"}, singleton_key="ann", start_after=60)
        await boss.send("drafts", {"text": "second"}, singleton_key="ann", on_duplicate="update")
        await boss.update_job("drafts", key="ann", priority=5)
        # end update
        for job in await boss.find_jobs("drafts", queued=True):
            print(job.data, job.priority)


trio.run(main)
