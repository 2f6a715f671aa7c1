import trioboss

app = trioboss.App(label="bakery")


@app.worker("bread", retry_limit=2)
async def bake(job: trioboss.RunningJob) -> None:
    async with job.transaction() as conn:
        await conn.execute("INSERT INTO public.loaf VALUES (%s)", (job.data["kind"],))
