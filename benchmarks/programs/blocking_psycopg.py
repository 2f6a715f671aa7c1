"""The floor: what two blocking psycopg programs reach with one table, by the same protocol as the adapters.

One program inserts and notifies in one statement. The other listens, claims up to ten jobs, records the entry and
completes them. There are no retries, leases or policies: it does what any queue on Postgres has to do, and no more.
"""

import json
import time

import psycopg

from benchmarks.adapters.base import Recorder
from benchmarks.programs.protocol import Spec, cpu_seconds, emit, handle_commands, now, read_spec

__all__ = ["CLAIM", "COMPLETE", "INSERT", "PENDING_SQL", "SCHEMA"]

SCHEMA = """
    create table job (
        id bigint generated always as identity primary key,
        queue text not null default 'bench',
        state smallint not null default 0,
        priority smallint not null default 0,
        start_after timestamptz not null default now(),
        data jsonb,
        completed_on timestamptz);
    create index job_ready on job (queue, priority, id) where state = 0"""
INSERT = "insert into job (data) values (%s)"
_INSERT_AND_NOTIFY = f"with sent as ({INSERT}) select pg_notify('job', '')"
CLAIM = """
    update job set state = 1 where id in (
        select id from job where queue = 'bench' and state = 0 and start_after <= now()
        order by priority, id limit %s for update skip locked)
    returning id, data"""
COMPLETE = "update job set state = 2, completed_on = now() where id = any(%s)"
PENDING_SQL = "select count(*) from job where state < 2"


def produce(spec: Spec) -> None:
    """Insert at a steady rate."""
    with psycopg.connect(spec["dsn"], autocommit=True) as connection:
        for _ in range(spec["warmup"]):
            connection.execute(_INSERT_AND_NOTIFY, [json.dumps({"i": 0, "t": 0, "due": 0})], prepare=True)
        emit("ready")
        input()
        cpu, begin, late = cpu_seconds(), now(), 0.0
        for i in range(spec["n"]):
            due = begin + i / spec["rate"]
            if (pause := due - now()) > 0:
                time.sleep(pause)
            called = now()
            late = max(late, called - due)
            data = json.dumps({"i": i, "t": called, "due": due})
            connection.execute(_INSERT_AND_NOTIFY, [data], prepare=True)
        emit("produced", n=spec["n"], begin=begin, end=now(), late=late, cpu=cpu_seconds() - cpu)
        input()  # until the harness has read its meters


def work(spec: Spec) -> None:
    """Listen, claim, complete."""
    recorder = Recorder()
    handle_commands(lambda command: emit("recorded", cpu=cpu_seconds(), **recorder.as_json()))
    with (
        psycopg.connect(spec["dsn"], autocommit=True) as listening,
        psycopg.connect(spec["dsn"], autocommit=True) as connection,
    ):
        listening.execute("listen job")
        emit("ready")
        while True:
            rows = connection.execute(CLAIM, [10], prepare=True).fetchall()
            for _, data in rows:
                recorder.hit(data)
            if rows:
                connection.execute(COMPLETE, [[row[0] for row in rows]], prepare=True)
            else:
                for _ in listening.notifies(stop_after=1):
                    pass


def set_up(spec: Spec) -> None:
    """Create the table."""
    with psycopg.connect(spec["dsn"], autocommit=True) as connection:
        connection.execute(SCHEMA.encode())
    emit("done", version=psycopg.__version__, pending_sql=PENDING_SQL)


if __name__ == "__main__":
    _spec = read_spec()
    {"setup": set_up, "produce": produce, "work": work}[_spec["role"]](_spec)
