import psycopg

import trioboss


def place_order(boss: trioboss.SyncBoss, connection: psycopg.Connection, number: int) -> None:
    with connection.transaction():
        connection.execute("INSERT INTO placed VALUES (%s)", (number,))
        boss.send("sync-orders", {"number": number}, conn=connection)


with trioboss.SyncBoss() as boss, psycopg.connect(boss.dsn) as connection:
    boss.create_queue("sync-orders")
    connection.execute("CREATE TEMP TABLE placed (number int)")
    connection.commit()

    place_order(boss, connection, 1)
    boss.send("sync-orders", {"number": 2}, priority=10)  # without a transaction of your own
    print([job.data["number"] for job in boss.fetch("sync-orders", batch_size=5)])
