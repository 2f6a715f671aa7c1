"""An action on a filter changes the jobs that were there when they were counted, as they were then, and no others."""

import re

import psycopg
import pytest
from forms import act, audit, hidden_fields

from trioboss.dashboard.filters import Counted
from trioboss.errors import UsageError


@pytest.fixture(params=[False, True], ids=["transaction", "savepoint"])
def sender(request, dsn):
    """A transaction that somebody else keeps open, or a savepoint in one: it has a number of its own."""
    with psycopg.connect(dsn) as connection:
        if request.param:
            connection.execute("select pg_current_xact_id()")
            connection.execute("savepoint a")
        connection.has_savepoint = request.param
        yield connection


def go_on(sender, boss):
    """Its savepoint is released, and later transactions commit before it."""
    if sender.has_savepoint:
        sender.execute("release a")
    boss.create_queue("later")
    boss.delete_queue("later")


async def press(client, page, path="jobs"):
    """Press the button of a page, and go on as its script does."""
    response = await act(client, path, **hidden_fields(page))
    while response.status_code == 200:
        response = await act(client, path, **hidden_fields(response.text))


def heading(page):
    return re.search(r"<h1>(.*?)</h1>", page)[1]


async def test_a_job_that_was_sent_before_a_count_and_committed_after_it_is_left_alone(
    acting, sync_boss, sender
):
    sync_boss.create_queue("q")
    sync_boss.insert("q", [{}] * 3)
    id = sync_boss.send("q", conn=sender)
    go_on(sender, sync_boss)
    page = (await acting.get("/queues/q/confirm?action=cancel")).text
    sender.commit()
    await press(acting, page)

    assert heading(page) == "Cancel 3 jobs?"
    assert [job.id for job in sync_boss.find_jobs("q", state="created")] == [id]
    assert audit(sync_boss) == [("local", "cancel", "q", 3, 3)]


async def test_a_job_that_failed_before_a_count_and_was_committed_after_it_is_not_retried(
    acting, sync_boss, sender
):
    sync_boss.create_queue("q", retry_limit=0)
    sync_boss.insert("q", [{}] * 2)
    first, second = sync_boss.fetch("q", batch_size=2)
    sync_boss.fail("q", first)
    sync_boss.fail("q", second, conn=sender)
    go_on(sender, sync_boss)
    page = (await acting.get("/queues/q/confirm?state=failed")).text
    sender.commit()
    await press(acting, page)

    assert heading(page) == "Retry 1 job?"
    assert [job.id for job in sync_boss.find_jobs("q", state="failed")] == [second.id]


async def test_a_dead_letter_that_was_committed_after_a_count_stays(acting, sync_boss, sender):
    sync_boss.create_queue("dead")
    sync_boss.create_queue("q", dead_letter="dead", retry_limit=0)
    sync_boss.insert("q", [{}] * 2)
    first, second = sync_boss.fetch("q", batch_size=2)
    sync_boss.fail("q", first)
    sync_boss.fail("q", second, conn=sender)
    go_on(sender, sync_boss)
    page = (await acting.get("/queues/dead/redrive")).text
    sender.commit()
    await press(acting, page, "redrive")

    assert heading(page) == "Redrive 1 dead letter"
    assert [job.source_id for job in sync_boss.find_jobs("dead")] == [second.id]


async def test_an_attempt_whose_lease_was_renewed_since_a_count_is_cancelled(acting, sync_boss):
    sync_boss.create_queue("q")
    sync_boss.insert("q", [{}] * 2)
    (job,) = sync_boss.fetch("q")
    page = (await acting.get("/queues/q/confirm?action=cancel")).text
    sync_boss.touch("q", job)
    await press(acting, page)

    assert len(sync_boss.find_jobs("q", state="cancelled")) == 2


async def test_a_job_that_a_worker_took_since_a_count_goes_on(acting, sync_boss):
    sync_boss.create_queue("q")
    sync_boss.insert("q", [{}] * 2)
    page = (await acting.get("/queues/q/confirm?action=cancel")).text
    (job,) = sync_boss.fetch("q")
    await press(acting, page)

    assert [each.id for each in sync_boss.find_jobs("q", state="active")] == [job.id]
    assert len(sync_boss.find_jobs("q", state="cancelled")) == 1


async def test_history_of_a_restored_database_whose_transactions_are_still_to_come_is_acted_on(
    acting, sync_boss, dsn
):
    sync_boss.create_queue("q", retry_limit=0)
    sync_boss.send("q")
    sync_boss.fail("q", sync_boss.fetch("q"))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("update trioboss.archive set xid = '99999999999'")
    await press(acting, (await acting.get("/queues/q/confirm?state=failed")).text)

    assert len(sync_boss.find_jobs("q", state="retry")) == 1


@pytest.mark.parametrize("text", ["3:3:", "3:9:3,5,8", "12345678901:12345678902:12345678901"])
def test_the_moment_of_a_count_comes_back_from_a_form(text):
    fields = {"counted_on": "2026-03-01T12:00:00+00:00", "committed": text}
    assert Counted.parse(fields).fields() == fields


@pytest.mark.parametrize(
    "text", ["", "x", "0:0:", "9:3:", "3:9:5,4", "3:9:9", "4:9:3", "3:9:4,", "3:9", "3" * 30 + ":9:"]
)
def test_a_moment_that_postgres_would_not_read_is_refused(text):
    with pytest.raises(UsageError, match="committed"):
        Counted.parse({"counted_on": "2026-03-01T12:00:00+00:00", "committed": text})
