"""Cron: an app with a schedule that ticks every second (six fields: seconds first)."""

import trio

import trioboss

app = trioboss.App()
ticks = []
enough = trio.Event()


@app.schedule("* * * * * *", data={"report": "minutely"})
@app.worker("reports")
async def report(job):
    ticks.append(job.created_on)
    if len(ticks) == 2:
        enough.set()


async def main():
    async with trioboss.open_boss(app=app) as boss:
        await enough.wait()
        await boss.unschedule("reports")
    print(f"{len(ticks)} ticks, at second {[tick.second for tick in ticks]}")


if __name__ == "__main__":
    trio.run(main)
