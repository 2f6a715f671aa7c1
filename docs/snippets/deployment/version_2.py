import trioboss

app = trioboss.App(label="bakery")


@app.worker("bread", retry_limit=5, retry_backoff=True)
async def bake(job: trioboss.RunningJob) -> None:
    async with job.transaction() as conn:
        await conn.execute("INSERT INTO public.loaf VALUES (%s)", (job.data["kind"],))


@app.schedule("0 4 * * *", tz="Europe/Berlin")
@app.worker("morning")
async def heat_the_oven(job: trioboss.RunningJob) -> None:
    await job.boss.send("bread", {"kind": "rolls"})
