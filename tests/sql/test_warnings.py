"""A queue with workers in which a job waits for an hour deserves a warning, and no other does."""

import psycopg
import pytest

import trioboss
from trioboss.postgres.executor import execute_blocking
from trioboss.sql import Catalog
from trioboss.store import Context, make_store


@pytest.fixture
def database(dsn):
    """A connection, and a queue with two jobs of which one is due."""
    with trioboss.SyncBoss(dsn) as boss, psycopg.connect(dsn, autocommit=True) as connection:
        boss.create_queue("mail_out")
        boss.insert("mail_out", [{}, {"start_after": 3600}])
        connection.execute(
            "update trioboss.job set start_after = now() - interval '61 min' where start_after <= now()"
        )
        yield connection


def add_worker(connection, queue):
    connection.execute(
        "insert into trioboss.worker (id, boss, name, queue) values (gen_random_uuid(), gen_random_uuid(), 'w', %s)",
        [queue],
    )


def warnings(connection, *, full=True):
    watch = execute_blocking(
        connection, make_store(Context(Catalog("trioboss"))).maintenance.watch(5, 1, full=full), connection
    )
    return [(queue, kind) for queue, kind, _ in watch.warnings if kind == "oldest_age"]


@pytest.mark.parametrize("queue", ["mail_out", "mail*", "*"])
def test_a_job_that_waits_for_an_hour_though_there_are_workers(database, queue):
    add_worker(database, queue)

    assert warnings(database) == [("mail_out", "oldest_age")]
    assert warnings(database, full=False) == []


@pytest.mark.parametrize("queue", ["mail", "mail.out", "mailxout", "other*"])
def test_a_queue_without_workers_is_nobodys_business(database, queue):
    add_worker(database, queue)

    assert warnings(database) == []


@pytest.mark.parametrize(
    "change",
    [
        "update trioboss.job set start_after = now() - interval '59 min' where start_after <= now()",
        "update trioboss.queue set paused = true",
        "update trioboss.job set start_after = now() + interval '1 min', gate = 1",
    ],
    ids=["not so old", "paused", "deferred"],
)
def test_a_queue_that_has_reason_to_wait_is_not_stuck(database, change):
    add_worker(database, "mail_out")
    database.execute(change)

    assert warnings(database) == []
