"""Throttle and debounce: at most one digest an hour for each user, and the last change is not lost."""

import trio

import trioboss


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("digests")
        for n in range(3):
            id = await boss.send_throttled("digests", {"user": 7}, seconds=3600, key="user-7")
            print(f"throttled {n}:", "sent" if id else "refused")
        for n in range(3):
            id = await boss.send_debounced("digests", {"user": 8}, seconds=3600, key="user-8")
            job = id and await boss.get_job_by_id("digests", id)
            deferred = job and job.start_after > job.created_on
            print(
                f"debounced {n}:", "refused" if not id else "kept for the next hour" if deferred else "sent"
            )
        await boss.delete_all_jobs("digests")


if __name__ == "__main__":
    trio.run(main)
