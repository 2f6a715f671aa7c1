from uuid import uuid4

import psycopg
import trio

import trioboss


# begin booking
async def book(boss: trioboss.Boss, seat: int) -> None:
    """Book a seat and send its ticket in one transaction, once, whatever happens to the database in between."""
    id = uuid4()
    while True:
        try:
            async with boss.transaction() as conn:
                await conn.execute("INSERT INTO booking VALUES (%s, %s) ON CONFLICT DO NOTHING", (id, seat))
                await boss.send("tickets", {"seat": seat}, id=id, conn=conn)
            return
        except (trioboss.DatabaseUnavailable, psycopg.OperationalError):
            await trio.sleep(1)


# end booking
async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("tickets")
        async with boss.transaction() as conn:
            await conn.execute("CREATE TABLE booking (id uuid PRIMARY KEY, seat int)")
        await book(boss, 7)
        print(await boss.get_queue_size("tickets"), "ticket")


trio.run(main)
