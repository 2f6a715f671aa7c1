from uuid import UUID, uuid5

import trio

import trioboss

WEBHOOKS = UUID("6f6b2a52-29f5-4f3a-8f6e-6d3d1f6f6a01")  # any fixed UUID of your own


async def receive_webhook(boss: trioboss.Boss, event: str) -> None:
    await boss.send("webhooks", {"event": event}, id=uuid5(WEBHOOKS, event))


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("webhooks")
        for event in ("evt-1", "evt-1", "evt-2"):  # the provider delivers evt-1 twice
            await receive_webhook(boss, event)
        print(await boss.get_queue_size("webhooks"), "jobs")


trio.run(main)
