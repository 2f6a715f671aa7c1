"""Audits of histories that a real queue has written."""

from datetime import timedelta

import psycopg
import pytest
from pipeline_helpers import files_of_lake

from trioboss.api.sync import SyncBoss
from trioboss.errors import UsageError
from trioboss.pipeline import archive
from trioboss.pipeline.history import Source
from trioboss.pipeline.jobs import audit as audit_job
from trioboss.pipeline.jobs.audit import audit
from trioboss.testing import temporary_database


def live(boss, queue):
    """The ordinary life of queues: jobs that complete, fail and are retried, are cancelled, resumed and deleted."""
    ids = [boss.send(queue, {"n": n}, singleton_key="k") for n in range(4)]
    for turn in range(9):
        for job in boss.fetch(queue):
            if turn in (0, 3):
                boss.fail(queue, job, ValueError(f"no {turn}"))
            else:
                boss.complete(queue, job)
    return ids


@pytest.fixture(scope="module")
def lived(server_dsn, template):
    """A database in which queues of all policies have lived, with everything that only looks like a violation."""
    with temporary_database(server_dsn, template) as dsn, SyncBoss(dsn, migrate=False) as boss:
        for policy in ("standard", "singleton", "key_strict_fifo"):
            boss.create_queue(policy, policy=policy, dead_letter=None, retry_limit=2)
            live(boss, policy)
        fifo = "key_strict_fifo"
        first, second = (boss.send(fifo, singleton_key="resumed") for _ in range(2))
        boss.cancel(fifo, first)
        (job,) = boss.fetch(fifo)
        assert job.id == second
        boss.complete(fifo, job)
        boss.resume(fifo, first)
        (job,) = boss.fetch(fifo)
        boss.complete(fifo, job)
        boss.send(fifo, singleton_key="deferred", start_after=timedelta(hours=1))
        boss.send(fifo, singleton_key="deferred")
        (job,) = boss.fetch(fifo)
        boss.complete(fifo, job)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(
                "update trioboss.live_job set start_after = now() where readiness = 'deferred'"
            )
        (job,) = boss.fetch(fifo)
        boss.complete(fifo, job)
        head = boss.send(fifo, singleton_key="deleted", retry_limit=0)
        boss.send(fifo, singleton_key="deleted")
        (job,) = boss.fetch(fifo)
        assert job.id == head
        boss.fail(fifo, job, "blocks its key")
        boss.delete_job(fifo, head)
        (job,) = boss.fetch(fifo)
        boss.complete(fifo, job)
        yield dsn


def fail_into_dead_letters(boss, queue, count):
    boss.create_queue("dead")
    boss.create_queue(queue, dead_letter="dead", retry_limit=0)
    for _ in range(count):
        boss.send(queue, {})
        (job,) = boss.fetch(queue)
        boss.fail(queue, job, "no")


@pytest.fixture(scope="module")
def dead_letters(lived):
    """Of three failed jobs the dead letter jobs: one has ended, one was deleted, and one is queued."""
    with SyncBoss(lived, migrate=False) as boss:
        fail_into_dead_letters(boss, "q", 3)
        (ended,) = boss.fetch("dead")
        boss.complete("dead", ended)
        (deleted, queued) = boss.find_jobs("dead", state="created")
        boss.delete_job("dead", deleted.id)
    return ended, deleted, queued


@pytest.fixture(scope="module")
def of_database(spark, lived, dead_letters):
    return audit(Source(dsn=lived), spark=spark)


@pytest.fixture(scope="module")
def of_lake(spark, lived, dead_letters, of_database, tmp_path_factory):
    """The audit of a lake that has lost its file of attempts."""
    lake = tmp_path_factory.mktemp("audit") / "lake"
    archive(lived, lake, spark=spark)
    attempts, jobs = sorted(files_of_lake(lake))
    assert jobs.startswith("jobs/")
    (lake / attempts).unlink()
    return lake, attempts, audit(Source(lake=lake, dsn=lived), spark=spark)


def kept_audits(dsn):
    """The audits that the dashboard shows, by their sources."""
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "select source, queues, jobs, attempts, violations, possible from trioboss.history_audit"
        ).fetchall()
    return {source: tuple(rest) for source, *rest in rows}


def test_the_history_of_a_real_queue_has_no_violation(lived, of_database, of_lake):
    assert of_database.violations == {}
    assert of_database.is_clean
    assert {finding.queue for finding in of_database.findings} == {"q"}  # of the dead letter jobs
    assert of_database.jobs > 10
    assert of_database.attempts > 4
    counts = (of_database.jobs, of_database.attempts)
    assert kept_audits(lived)["database"] == ([], *counts, {}, {"no dead letter": 1})


def test_a_dead_letter_job_that_is_nowhere_is_possibly_missing(
    lived, of_database, dead_letters, monkeypatch, capsys
):
    monkeypatch.setattr(audit_job, "audit", lambda *given, **more: of_database)
    ended, deleted, queued = dead_letters

    assert audit_job.main(["--dsn", lived, "--strict"]) == 1
    capsys.readouterr()
    assert audit_job.main(["--dsn", lived]) == 0

    out = capsys.readouterr().out
    assert "no dead letter (possible): no dead letter job in dead, unless it was deleted" in out
    assert f"job {deleted.source_id}" in out
    assert str(queued.source_id) not in out
    assert str(ended.source_id) not in out
    assert "no violation, 1 possible violation (1 no dead letter)" in out


def test_a_lake_does_not_have_dead_letter_jobs_that_are_queued(of_lake, dead_letters):
    _, _, found = of_lake
    _, deleted, queued = dead_letters

    missing = {finding.job for finding in found.findings if finding.kind == "no dead letter"}
    assert missing == {str(deleted.source_id), str(queued.source_id)}
    assert found.possible == {"no dead letter": 2}


def test_files_that_a_lake_has_lost_are_found_and_the_others_audited(lived, of_lake):
    lake, attempts, found = of_lake

    assert found.violations["lake file"] == 1
    kept = ([], found.jobs, 0, dict(found.violations), dict(found.possible))
    assert kept_audits(lived)[str(lake)] == kept
    assert str(found.findings[0]) == f"lake file: {attempts} is missing"
    assert found.jobs > 10


def test_a_dead_letter_job_of_another_queue_that_ended_after_the_period_is_found(spark, dsn, sync_boss):
    fail_into_dead_letters(sync_boss, "q", 1)
    (dead_letter,) = sync_boss.fetch("dead")
    sync_boss.complete("dead", dead_letter)
    after_failure = dead_letter.created_on + timedelta(microseconds=1)

    found = audit(Source(dsn=dsn, queues=["q"], until=after_failure), spark=spark)

    assert (found.jobs, found.violations, found.possible) == (1, {}, {})


def test_a_database_says_which_queues_have_no_order_of_starts(dsn, sync_boss):
    for name, policy, commit_order in [
        ("free", "key_strict_fifo", False),
        ("strict", "key_strict_fifo", True),
        ("other", "standard", False),
    ]:
        sync_boss.create_queue(name, policy=policy, commit_order=commit_order)

    assert audit_job._unordered_queues(Source(dsn=dsn)) == ["free"]


@pytest.mark.soak
def test_an_audit_of_a_queue_without_history_is_an_error(spark, lived):
    with pytest.raises(UsageError, match="queue: nothing of nosuch is in this history"):
        audit_job.main(["--dsn", lived, "--queue", "nosuch"])
    assert ["nosuch"] not in [queues for queues, *_ in kept_audits(lived).values()]


# -- after this, the history is no longer what a queue does


def test_a_history_that_was_tampered_with_is_found_and_the_exit_code_says_so(spark, lived, capsys):
    with SyncBoss(lived, migrate=False) as boss:
        job = boss.find_jobs("singleton", state="completed")[0]
        boss.send("singleton", {"forged": True}, singleton_key="k")
        (forged,) = boss.fetch("singleton")
        boss.complete("singleton", forged)
    forge(lived, forged.id, job.started_on)

    assert audit_job.main(["--dsn", lived, "--queue", "singleton"]) == 1

    out = capsys.readouterr().out
    assert str(job.id) in out
    assert str(forged.id) in out
    assert "overlap: singleton" in out
    queues, _, _, violations, _ = kept_audits(lived)["database"]
    assert queues == ["singleton"]
    assert violations["overlap"] >= 1


def forge(dsn, id, started_on):
    """Let an archived job have started when another ran."""
    with psycopg.connect(dsn) as connection:
        connection.execute("update trioboss.archive set started_on = %s where id = %s", (started_on, id))
