import trio

import trioboss


async def place_order(boss: trioboss.Boss, number: int) -> None:
    async with boss.transaction() as conn:
        await conn.execute("INSERT INTO tutorial_order VALUES (%s)", (number,))
        await boss.send("confirmations", {"order": number}, conn=conn)
        if number == 2:
            raise RuntimeError("the process fails before its commit")


async def count_orders(boss: trioboss.Boss) -> int:
    async with boss.transaction() as conn:
        cursor = await conn.execute("SELECT count(*) FROM tutorial_order")
        ((count,),) = await cursor.fetchall()
        return int(count)


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("confirmations")
        async with boss.transaction() as conn:
            await conn.execute("CREATE TABLE IF NOT EXISTS tutorial_order (number int PRIMARY KEY)")
            await conn.execute("TRUNCATE tutorial_order")
        await boss.delete_all_jobs("confirmations")

        for number in (1, 2, 3):
            try:
                await place_order(boss, number)
            except RuntimeError as error:
                print("order", number, "failed:", error)
        print(await count_orders(boss), "orders")
        print([job.data for job in await boss.find_jobs("confirmations")])


trio.run(main)
