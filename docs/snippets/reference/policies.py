import trio

import trioboss


async def main() -> None:
    async with trioboss.open_boss() as boss:
        # begin policies
        for policy in trioboss.Policy:
            await boss.create_queue(policy, policy=policy)
            sent = [await boss.send(policy, singleton_key="customer-7") for _ in range(3)]
            claimed = await boss.fetch(policy, batch_size=3)
            accepted = [id for id in sent if id is not None]
            print(f"{policy:15} accepted {len(accepted)}, claimed {len(claimed)}")
        # end policies


trio.run(main)
