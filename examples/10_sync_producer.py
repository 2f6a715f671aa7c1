"""From code without trio, as in a Django view: SyncBoss, inside the view's own transaction."""

from uuid import UUID

import psycopg

import trioboss


def place_order(boss: trioboss.SyncBoss, connection: psycopg.Connection, order_id: int) -> UUID | None:
    with connection.transaction():
        connection.execute("INSERT INTO placed_order (id) VALUES (%s)", (order_id,))
        return boss.send("confirmations", {"order": order_id}, conn=connection)


def main() -> None:
    with trioboss.SyncBoss() as boss, psycopg.connect(boss.dsn) as connection:
        boss.create_queue("confirmations")
        connection.execute("CREATE TEMP TABLE placed_order (id int)")
        connection.commit()

        id = place_order(boss, connection, 1)
        (job,) = boss.fetch("confirmations")
        print("the worker would get", job.data, job.id == id)
        boss.complete("confirmations", job)


if __name__ == "__main__":
    main()
