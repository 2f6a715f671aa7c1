"""Runs writers.sql and readers.sql, which the page about SQL shows."""

from pathlib import Path

import psycopg

import trioboss

with trioboss.SyncBoss() as boss:
    boss.create_queue("email")
    boss.create_queue("invoices", policy="exclusive")
    with psycopg.connect(boss.dsn, autocommit=True) as conn:
        conn.execute(Path("writers.sql").read_text())
        # begin copy
        with conn.cursor().copy("COPY trioboss.job (name, data) FROM STDIN") as copy:
            for number in range(3):
                copy.write_row(("email", f'{{"newsletter": {number}}}'))
        # end copy
        # begin refused
        insert = "INSERT INTO trioboss.job (name, singleton_key) VALUES ('invoices', 'customer-7')"
        conn.execute(insert)
        try:
            conn.execute(insert)  # exclusive: one job of a key at a time
        except psycopg.errors.UniqueViolation:
            print("refused")
        # end refused
        for row in conn.execute(Path("readers.sql").read_text()):
            print(*row)
