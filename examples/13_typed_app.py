"""A typed app: what a handler gets, and what can be sent to it, is known to the type checker. Needs pydantic."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypedDict

import attrs
import trio
from pydantic import BaseModel

import trioboss


@attrs.frozen
class Order:
    number: int
    items: list[str]


@dataclass
class Parcel:
    order: int
    items: int = 1


class Refund(TypedDict):
    order: int


class Email(BaseModel):
    text: str


@asynccontextmanager
async def lifespan(boss: trioboss.Boss) -> AsyncIterator[str]:
    async with boss.transaction() as conn:
        await conn.execute("CREATE TABLE IF NOT EXISTS shipped (number int)")
    yield "a client, a cache: the context of every job"


app = trioboss.App(lifespan=lifespan)


@app.use
async def refund_failures(job: trioboss.RunningJob, call_next: trioboss.CallNext) -> object:
    try:
        return await call_next(job)
    except ValueError as error:
        await refund.send({"order": job.data.number})
        raise job.dead_letter(str(error)) from error


@app.worker("orders", data=Order)
async def pack(job: trioboss.RunningJob[Order]) -> None:
    if not job.data.items:
        raise ValueError("an order without items")
    async with job.transaction() as conn:  # its commit completes the job, too
        await conn.execute("INSERT INTO shipped VALUES (%s)", (job.data.number,))
        await ship.send(Parcel(job.data.number, len(job.data.items)), conn=conn)


@app.worker("parcels", data=Parcel)
async def ship(job: trioboss.RunningJob[Parcel]) -> None:
    await write.send(Email(text=f"order {job.data.order} is on its way, items: {job.data.items}"))


@app.worker("refunds", data=Refund)
async def refund(job: trioboss.RunningJob[Refund]) -> None:
    await write.send(Email(text=f"order {job.data['order']} is refunded"))


@app.worker("emails", data=Email)
async def write(job: trioboss.RunningJob[Email]) -> None:
    print("e-mail:", job.data.text)


async def main() -> None:
    async with trioboss.open_boss(app=app) as boss, boss.events(trioboss.JobCompleted) as events:
        for order in (Order(1, ["book", "map"]), Order(2, [])):
            print("order", order.number, (await boss.wait_for("orders", await pack.send(order))).state)
            async for event in events:
                if event.queue == "emails":
                    break


if __name__ == "__main__":
    trio.run(main)
