import trio

import trioboss


async def main() -> None:
    fired = trio.Event()

    async def report(job: trioboss.RunningJob) -> None:
        if not fired.is_set():
            print("report for", job.data["team"])
            fired.set()

    async with trioboss.open_boss() as boss:
        await boss.create_queue("reports")
        await boss.schedule("reports", "0 7 * * 1-5", {"team": "sales"}, tz="Europe/Berlin")
        await boss.schedule("reports", "* * * * * *", {"team": "support"}, key="every-second")
        for schedule in await boss.get_schedules("reports"):
            print(schedule.key or "-", "|", schedule.cron, "|", schedule.timezone)

        await boss.work("reports", report)
        await fired.wait()
        await boss.unschedule("reports", key="every-second")


trio.run(main)
