"""The program under test: a queue of orders in strict order for each customer."""

from dataclasses import dataclass

import trioboss

app = trioboss.App()


@dataclass
class Order:
    number: int
    items: list[str]


def price_of(order: Order) -> int:
    return 5 * len(order.items)


@app.worker("shop-orders", data=Order, policy="key_strict_fifo", retry_limit=0)
async def handle_order(job: trioboss.RunningJob[Order]) -> int:
    if not job.data.items:
        raise ValueError("an order without items")
    return price_of(job.data)
