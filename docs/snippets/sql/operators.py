"""Runs operators.sql, which the page about SQL shows, and an update, which is refused."""

from pathlib import Path
from uuid import UUID

import psycopg

import trioboss

with trioboss.SyncBoss() as boss, psycopg.connect(boss.dsn, autocommit=True) as conn:
    boss.create_queue("moves", policy="key_strict_fifo", retry_limit=0)
    boss.create_queue("email")
    for number in range(1, 3):
        id = UUID(f"0190a5c4-0000-7000-8000-{number:012}")
        boss.send("moves", {"number": number}, singleton_key="ann", id=id)
    boss.fail("moves", boss.fetch("moves"), {"name": "ValueError", "message": "no such field"})
    for number in range(3):
        boss.send("email", {"number": number})
    boss.fetch("email")

    cursor = conn.execute(Path("operators.sql").read_text())
    while True:
        columns = [column.name for column in cursor.description or ()]
        for row in cursor:
            shown = dict(zip(columns, row, strict=True))
            known = (
                "name",
                "state",
                "due",
                "error",
                "count",
                "waiting",
                "readiness",
                "outcome",
            )  # the others differ from run to run
            print(*(shown[name] for name in known if name in shown))
        if not cursor.nextset():
            break
    # begin refused
    try:
        conn.execute("UPDATE trioboss.job SET priority = 5 WHERE name = 'email'")
    except psycopg.errors.ObjectNotInPrerequisiteState as error:
        print(error.sqlstate, error.diag.message_primary)
    # end refused
