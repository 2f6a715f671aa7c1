import trio

import trioboss


async def book(job: trioboss.RunningJob) -> None:
    async with job.transaction() as conn:
        await conn.execute("INSERT INTO booking VALUES (%s, %s)", (job.data["account"], job.data["amount"]))
        await job.boss.send("receipts", job.data, conn=conn)
        if job.attempt == 1:
            raise ConnectionError("the process dies before its commit")
    # From here on the row, the receipt and the completion of this job are one commit.


async def main() -> None:
    async with trioboss.open_boss() as boss:
        async with boss.transaction() as conn:
            await conn.execute("DROP TABLE IF EXISTS booking")
            await conn.execute("CREATE TABLE booking (account text, amount int)")
        await boss.create_queue("receipts")
        await boss.delete_all_jobs("receipts")
        await boss.create_queue("bookings")
        await boss.work("bookings", book)

        id = await boss.send("bookings", {"account": "ann", "amount": 5})
        job = await boss.wait_for("bookings", id)
        async with boss.transaction() as conn:
            rows = await (await conn.execute("SELECT * FROM booking")).fetchall()
        print(job.state, "at attempt", job.attempt)
        print("rows:", rows, "receipts:", await boss.get_queue_size("receipts"))


trio.run(main)
