"""Transactional outbox with a plain psycopg connection: the order and its e-mail exist both or neither."""

import psycopg
import trio

import trioboss


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("emails")
        await boss.delete_all_jobs("emails")
        with psycopg.connect(boss.dsn) as conn:
            conn.execute("CREATE TEMP TABLE shop_order (id int)")
            conn.commit()

            conn.execute("INSERT INTO shop_order VALUES (1)")
            await boss.send("emails", {"order": 1}, conn=conn)
            conn.rollback()
            print("rolled back:", await boss.get_queue_size("emails"), "e-mails")

            conn.execute("INSERT INTO shop_order VALUES (2)")
            await boss.send("emails", {"order": 2}, conn=conn)
            conn.commit()
            print("committed:", await boss.get_queue_size("emails"), "e-mail")


if __name__ == "__main__":
    trio.run(main)
