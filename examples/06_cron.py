"""Cron: an app with a schedule that ticks every second (six fields: seconds first)."""

from datetime import datetime

import trio

import trioboss

app = trioboss.App()
ticks: list[datetime] = []
enough = trio.Event()


@app.schedule("* * * * * *", data={"report": "minutely"})
@app.worker("reports")
async def report(job: trioboss.RunningJob) -> None:
    ticks.append(job.created_on)
    if len(ticks) == 2:
        enough.set()


async def main() -> None:
    async with trioboss.open_boss(app=app) as boss:
        await enough.wait()
        await boss.unschedule("reports")
    print(f"{len(ticks)} ticks, at second {[tick.second for tick in ticks]}")


if __name__ == "__main__":
    trio.run(main)
