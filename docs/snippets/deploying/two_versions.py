"""Payloads live longer than code: the new handler still takes what the old producers have sent."""

from dataclasses import dataclass

import trio

import trioboss

app = trioboss.App()


@dataclass
class Invoice:
    number: int
    currency: str = "EUR"  # new in this version: jobs of the old one have no currency


@app.worker("invoices", data=Invoice)
async def write_invoice(job: trioboss.RunningJob[Invoice]) -> str:
    return f"{job.data.number} in {job.data.currency}"


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("invoices")
        old = await boss.send("invoices", {"number": 1})  # by the old version, before the deployment
        await app.start(boss)
        new = await write_invoice.send(Invoice(2, "USD"))
        for id in (old, new):
            print((await boss.wait_for("invoices", id)).output)


if __name__ == "__main__":
    trio.run(main)
