from datetime import timedelta
from pathlib import Path

import psycopg

import trioboss

with trioboss.SyncBoss() as boss, psycopg.connect(boss.dsn) as connection:
    boss.create_queue("newsletters", delete_after=timedelta(days=1), keep_completed=False)
    boss.update_queue("newsletters", delete_after=3600)
    queue = boss.get_queue("newsletters")
    print(queue and (queue.delete_after, queue.retention, queue.keep_completed))
    (size,) = connection.execute(Path("size.sql").read_bytes()).fetchone() or ("",)
    print("a size:", size.endswith(("kB", "MB")))
