from uuid import uuid4

import trio

import trioboss


async def send_surely(boss: trioboss.Boss, queue: str, data: trioboss.JsonInput) -> None:
    """Send a job once, whatever happens to the database in between."""
    id = uuid4()  # the same for each try, so that a repeated send makes no second job
    delay = 0.1
    while True:
        try:
            await boss.send(queue, data, id=id)
            return
        except trioboss.DatabaseUnavailable:  # OutcomeUnknown is one, too
            await trio.sleep(delay)
            delay = min(2 * delay, 5)


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("surely")
        await send_surely(boss, "surely", {"number": 1})
        print(await boss.get_queue_size("surely"), "job")


trio.run(main)
