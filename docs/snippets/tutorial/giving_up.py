import trio

import trioboss


async def charge(job: trioboss.RunningJob) -> str:
    card = job.data["card"]
    if card == "expired":
        raise job.dead_letter("the card has expired")  # another attempt would not help
    if card == "busy" and job.attempt == 1:
        raise job.retry(delay=0.05, reason="the bank asks for a pause")
    if card == "slow":
        await trio.sleep(60)  # longer than expire_in: the handler is cancelled here
    return "paid"


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("cards", retry_limit=1)
        await boss.work("cards", charge, concurrency=3)

        for card in ("busy", "expired", "slow"):
            seconds = 0.1 if card == "slow" else 60
            id = await boss.send("cards", {"card": card}, expire_in=seconds)
            job = await boss.wait_for("cards", id)
            result = job.output if job.state == "completed" else job.output["message"]
            print(f"{card}: {job.state} at attempt {job.attempt}: {result}")


trio.run(main)
