"""An app for a worker process, with everything that a handler can have. It prints what happens."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import trio

import trioboss


@attrs.frozen
class Order:
    number: int
    seconds: float = 0.0


@asynccontextmanager
async def lifespan(boss: trioboss.Boss) -> AsyncIterator[str]:
    print("lifespan entered", flush=True)
    async with boss.transaction() as conn:
        await conn.execute("CREATE TABLE IF NOT EXISTS parcel (number int)")
    yield "context"
    print("lifespan left", flush=True)


app = trioboss.App(lifespan=lifespan)


@app.use
async def announce(job: trioboss.RunningJob, call_next: trioboss.CallNext) -> object:
    print("before", job.queue, flush=True)
    try:
        return await call_next(job)
    finally:
        print("after", job.queue, job.cancelled, flush=True)


@app.worker("orders", data=Order, retry_limit=3)
async def pack(job: trioboss.RunningJob[Order]) -> None:
    print("order", job.data.number, job.context, flush=True)
    await trio.sleep(job.data.seconds)
    async with job.transaction() as conn:
        await conn.execute("INSERT INTO parcel VALUES (%s)", (job.data.number,))
        await job.boss.send("short", job.data.number, conn=conn)
