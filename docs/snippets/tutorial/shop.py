"""A small shop: orders, payments with retries, packing in strict order, and a daily report."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio

import trioboss


@dataclass
class Order:
    number: int
    customer: str
    amount: int


class Bank:
    """Stands for the client of a payment provider. Its first call fails."""

    def __init__(self) -> None:
        self.charged: dict[str, int] = {}
        self.calls = 0

    async def charge(self, key: str, amount: int) -> None:
        self.calls += 1
        if self.calls == 1:
            raise ConnectionError("the bank does not answer")
        self.charged.setdefault(key, amount)  # the same key twice is one charge


@asynccontextmanager
async def lifespan(boss: trioboss.Boss) -> AsyncIterator[Bank]:
    yield Bank()


app = trioboss.App(lifespan=lifespan, label="shop")


@app.worker("shop/payments", data=Order, concurrency=5, retry_limit=5, retry_delay=0.05)
async def pay(job: trioboss.RunningJob[Order]) -> None:
    order = job.data
    await job.context.charge(f"order-{order.number}", order.amount)  # the same key in each attempt
    async with job.transaction() as conn:  # its commit also completes the job
        await conn.execute("UPDATE shop_order SET state = 'paid' WHERE number = %s", (order.number,))
        await pack.send(order, singleton_key=order.customer, conn=conn)


@app.worker("shop/packing", data=Order, policy="key_strict_fifo", concurrency=5)
async def pack(job: trioboss.RunningJob[Order]) -> None:
    async with job.transaction() as conn:
        await conn.execute("UPDATE shop_order SET state = 'packed' WHERE number = %s", (job.data.number,))


@app.schedule("0 18 * * *", tz="Europe/Berlin")
@app.worker("shop/report")
async def report(job: trioboss.RunningJob) -> dict[str, int]:
    async with job.boss.transaction() as conn:
        cursor = await conn.execute("SELECT state, count(*) FROM shop_order GROUP BY state")
        return dict(await cursor.fetchall())


async def place(boss: trioboss.Boss, order: Order) -> None:
    """Store an order and ask for its payment: both, or neither."""
    async with boss.transaction() as conn:
        await conn.execute("INSERT INTO shop_order VALUES (%s, %s, 'placed')", (order.number, order.customer))
        await pay.send(order, boss=boss, conn=conn)


async def create_tables(boss: trioboss.Boss) -> None:
    """Stands for the migrations of the shop: trioboss creates its own tables, and no others."""
    async with boss.transaction() as conn:
        await conn.execute(
            "CREATE TABLE IF NOT EXISTS shop_order (number int PRIMARY KEY, customer text, state text)"
        )


async def main() -> None:
    async with trioboss.open_boss(app=app) as boss:
        await create_tables(boss)
        async with boss.transaction() as conn:
            await conn.execute("TRUNCATE shop_order")
        async with boss.events(trioboss.JobCompleted) as completed:
            for number, customer in enumerate(("ann", "bob", "ann"), start=1):
                await place(boss, Order(number, customer, 10 * number))
            packed = 0
            async for event in completed:
                packed += event.queue == "shop/packing"
                if packed == 3:
                    break

        ended = await boss.wait_for("shop/report", await boss.send("shop/report"))
        print("report:", ended.output)
        payments = await boss.find_jobs("shop/payments", newest=True, limit=3)
        print("retries:", sum(job.retry_count for job in payments))


if __name__ == "__main__":
    trio.run(main)
