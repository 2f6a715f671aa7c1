import trio

import trioboss


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("greetings")
        for name in ("ann", "bob", "cleo"):
            await boss.send("greetings", {"name": name})
        print(await boss.get_queue_size("greetings"), "jobs are queued")


trio.run(main)
