"""The proof of an erasure is true in Postgres, whatever was deleted before and happens meanwhile."""

import pytest
from erasure_helpers import before_each_deletion, send_and_fail
from pipeline_helpers import end_jobs

from trioboss.errors import UsageError
from trioboss.pipeline import erase
from trioboss.pipeline.jobs.erase import ErasureIncomplete


def test_jobs_are_erased_in_a_database_without_a_lake(dsn, database):
    end_jobs(database, 3)
    ids = [str(id) for (id,) in database.execute("select id from trioboss.archive")]

    done = erase(dsn, "email", ids=ids[:2])

    assert (done.ended, done.batch, done.rows_left) == (2, None, 0)
    assert database.execute("select count(*) from trioboss.archive").fetchone() == (1,)


def fail_and_delete(boss):
    """A job of ann's that failed once and was deleted: its attempt stays, with the key and the error."""
    id = boss.send("email", {}, singleton_key="ann")
    (job,) = boss.fetch("email")
    boss.fail("email", job, "ann@example.org is unknown")
    boss.delete_job("email", id)
    return str(id)


def count_attempts(database):
    return database.execute("select count(*) from trioboss.attempt").fetchone()[0]


def test_the_attempts_of_a_deleted_job_are_erased_by_its_key(dsn, database, failing):
    id = fail_and_delete(failing)
    assert count_attempts(database) == 1

    done = erase(dsn, "email", key="ann")

    assert (done.jobs, done.attempts) == ([("email", id)], 1)
    assert count_attempts(database) == 0


def test_the_attempts_of_a_deleted_job_are_erased_by_its_id(dsn, database, failing):
    id = fail_and_delete(failing)

    assert erase(dsn, "email", ids=[id]).attempts == 1
    assert count_attempts(database) == 0


def test_the_dead_letter_of_a_job_whose_own_row_is_gone_is_erased(dsn, database, failing):
    id, copy = send_and_fail(failing, "email", "x")
    database.execute("delete from trioboss.archive where id = %s", [id])

    done = erase(dsn, "email", ids=[id])

    assert done.jobs == sorted([("email", id), ("dead", copy)])
    assert database.execute("select count(*) from trioboss.archive").fetchone() == (0,)


def test_a_job_that_was_redriven_is_erased_with_the_job_that_had_failed(dsn, database, failing):
    id = failing.send("email", {"of": "ann"}, retry_limit=0)
    (job,) = failing.fetch("email")
    failing.fail("email", job, "no")
    failing.redrive("dead")
    (redriven,) = failing.find_jobs("email", state="created")

    done = erase(dsn, "email", ids=[str(id)])

    assert done.jobs == sorted([("email", str(id)), ("email", str(redriven.id))])
    assert database.execute("select count(*) from trioboss.all_jobs").fetchone() == (0,)


def test_a_copy_that_is_made_during_an_erasure_is_erased(dsn, database, failing, monkeypatch):
    id = failing.send("email", {"of": "ann"}, singleton_key="ann", retry_limit=0)
    jobs = failing.fetch("email")
    before_each_deletion(monkeypatch, lambda: failing.fail("email", jobs.pop(), "no") if jobs else None)

    done = erase(dsn, "email", key="ann")

    assert ("email", str(id)) in done.jobs
    assert {queue for queue, _ in done.jobs} == {"email", "dead"}
    left = "select (select count(*) from trioboss.all_jobs) + (select count(*) from trioboss.attempt)"
    assert database.execute(left).fetchone() == (0,)


def test_an_erasure_that_new_jobs_keep_up_with_says_so(dsn, failing, monkeypatch):
    failing.send("email", {}, singleton_key="ann")
    before_each_deletion(monkeypatch, lambda: failing.send("email", {}, singleton_key="ann"))

    with pytest.raises(ErasureIncomplete, match=r"stop the programs that send them, and run it again"):
        erase(dsn, "email", key="ann")


def test_an_erasure_needs_to_know_which_jobs(dsn):
    with pytest.raises(UsageError, match="name the jobs"):
        erase(dsn, "email")
