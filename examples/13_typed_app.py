"""A typed app: what a handler gets, and what can be sent to it, is known to the type checker."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import trio

import trioboss


@attrs.frozen
class Order:
    number: int
    items: list[str]


@asynccontextmanager
async def lifespan(boss: trioboss.Boss) -> AsyncIterator[str]:
    async with boss.transaction() as conn:
        await conn.execute("CREATE TABLE IF NOT EXISTS parcel (number int)")
    yield "a client, a cache: the context of every job"


app = trioboss.App(lifespan=lifespan)


@app.use
async def log_failures(job: trioboss.RunningJob, call_next: trioboss.CallNext) -> object:
    try:
        return await call_next(job)
    except ValueError as error:
        print("gave up:", error)
        raise job.dead_letter(str(error)) from error


@app.worker("orders", data=Order)
async def pack(job: trioboss.RunningJob[Order]) -> None:
    if not job.data.items:
        raise ValueError("an order without items")
    async with job.transaction() as conn:  # its commit completes the job, too
        await conn.execute("INSERT INTO parcel VALUES (%s)", (job.data.number,))
        await job.boss.send("emails", {"shipped": job.data.number}, conn=conn)


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("emails")
        await app.start(boss)
        for order in (Order(1, ["book"]), Order(2, [])):
            ended = await boss.wait_for("orders", await pack.send(order), timeout=30)
            print("order", order.number, ended.state)
        print("e-mail", (await boss.find_jobs("emails"))[0].data)


if __name__ == "__main__":
    trio.run(main)
