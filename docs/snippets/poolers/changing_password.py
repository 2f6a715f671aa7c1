from typing import Any

import trio

import trioboss


async def make_token() -> str:
    """Stands for a call of your cloud: a password that is valid for some minutes."""
    return "secret"


# begin connect
async def connect(conninfo: str, **arguments: Any) -> trioboss.Connection[Any]:
    return await trioboss.Connection.connect(conninfo, password=await make_token(), **arguments)


# end connect


async def main() -> None:
    async with trioboss.open_boss(connect=connect) as boss:
        await boss.create_queue("tokens")
        await boss.send("tokens")
        print(await boss.get_queue_size("tokens"), "job")


trio.run(main)
