"""The program under test: a queue of orders in strict order for each customer."""

from dataclasses import dataclass

import trioboss

app = trioboss.App(label="orders")


@dataclass
class Order:
    number: int
    items: list[str]


def price_of(order: Order) -> int:
    return 5 * len(order.items)


@app.worker("shop-orders", data=Order, policy="key_strict_fifo", retry_limit=1)
async def handle_order(job: trioboss.RunningJob[Order]) -> int:
    if not job.data.items:
        raise ValueError("an order without items")
    price = price_of(job.data)
    async with job.boss.transaction() as conn:
        await conn.execute(
            "INSERT INTO invoice VALUES (%s, %s) ON CONFLICT DO NOTHING", (job.data.number, price)
        )
    return price
