import os

import psycopg
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

import trioboss

dsn = os.environ["TRIOBOSS_DSN"]
engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))

with trioboss.SyncBoss(dsn) as boss:
    boss.create_queue("sa-orders")
    with Session(engine) as session:
        session.execute(text("CREATE TEMP TABLE sa_order (number int)"))
        session.execute(text("INSERT INTO sa_order VALUES (1)"))
        boss.send("sa-orders", {"number": 1}, conn=session)
        print("before the commit:", boss.get_queue_size("sa-orders"))
        session.commit()
        print("after the commit:", boss.get_queue_size("sa-orders"))
engine.dispose()
