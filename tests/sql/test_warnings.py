"""Operators are warned of a queue with workers in which a job has waited for an hour, and of no other."""

import psycopg
import pytest

import trioboss
from trioboss.postgres.blocking import execute_blocking
from trioboss.sql import Catalog
from trioboss.store import Context, make_store


@pytest.fixture
def database(dsn):
    """A connection, and a queue with two jobs of which one is due."""
    with trioboss.SyncBoss(dsn) as boss, psycopg.connect(dsn, autocommit=True) as connection:
        boss.create_queue("mail_out")
        boss.insert("mail_out", [{}, {"start_after": 3600}])
        connection.execute(
            "update trioboss.live_job set start_after = now() - interval '61 min' where start_after <= now()"
        )
        yield connection


def add_worker(connection, queue):
    connection.execute(
        "insert into trioboss.worker (id, boss, name, queue) values (gen_random_uuid(), gen_random_uuid(), 'w', %s)",
        [queue],
    )


def find_warnings(connection, *, warnings=True):
    maintenance = make_store(Context(Catalog("trioboss"))).maintenance
    rescue = execute_blocking(connection, maintenance.rescue_leases(5, 1, warnings=warnings), connection)
    return [(queue, kind) for queue, kind, _ in rescue.warnings if kind == "oldest_age"]


@pytest.mark.parametrize("queue", ["mail_out", "mail*", "*"])
def test_a_job_that_waits_for_an_hour_although_there_are_workers(database, queue):
    add_worker(database, queue)

    assert find_warnings(database) == [("mail_out", "oldest_age")]
    assert find_warnings(database, warnings=False) == []


@pytest.mark.parametrize("queue", ["mail", "mail.out", "mailxout", "other*"])
def test_a_queue_without_workers_causes_no_warning(database, queue):
    add_worker(database, queue)

    assert find_warnings(database) == []


@pytest.mark.parametrize(
    "change",
    [
        "update trioboss.live_job set start_after = now() - interval '59 min' where start_after <= now()",
        "update trioboss.queue set paused = true",
        "update trioboss.live_job set start_after = now() + interval '1 min', readiness = 'deferred'",
    ],
    ids=["not so old", "paused", "deferred"],
)
def test_a_queue_whose_jobs_have_a_reason_to_wait_causes_no_warning(database, change):
    add_worker(database, "mail_out")
    database.execute(change)

    assert find_warnings(database) == []
