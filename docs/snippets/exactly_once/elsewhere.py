import trio

import trioboss


class Bank:
    """Stands for a service that takes an idempotency key, as most payment providers do."""

    def __init__(self) -> None:
        self.charges: dict[str, int] = {}

    async def charge(self, amount: int, idempotency_key: str) -> None:
        self.charges.setdefault(idempotency_key, amount)


bank = Bank()


async def charge(job: trioboss.RunningJob) -> None:
    await bank.charge(job.data["amount"], idempotency_key=str(job.id))  # the same in each attempt
    if job.attempt == 1:
        raise ConnectionError("the connection broke before the answer came")


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("card-charges")
        await boss.work("card-charges", charge)
        job = await boss.wait_for("card-charges", await boss.send("card-charges", {"amount": 7}))
        print(job.state, "at attempt", job.attempt, "with", len(bank.charges), "charge")


trio.run(main)
