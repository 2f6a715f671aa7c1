import trio

import trioboss


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("totals", policy="short")
        await boss.create_queue("digests")

        async def show(text: str, id: object) -> None:
            print(f"{text}: {'refused' if id is None else 'sent'}")

        # begin unique
        for _ in range(2):
            # The policy of the queue: one job of a key that waits for its first attempt.
            await show("short", await boss.send("totals", singleton_key="ann"))
        for _ in range(2):
            # Under every policy: one job of a key that has not ended.
            await show("once", await boss.send_once("digests", None, key="ann"))
        for _ in range(2):
            # One job of a key in each day.
            await show("throttled", await boss.send_throttled("digests", None, 86400, key="bob"))
        for _ in range(3):
            # The same; the second job is deferred to the next day, so that the last change is not lost.
            await show("debounced", await boss.send_debounced("digests", None, 86400, key="cleo"))
        # end unique


trio.run(main)
