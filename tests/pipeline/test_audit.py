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


def kept_audits(dsn):
    """The rows of audits that the dashboard shows."""
    with psycopg.connect(dsn) as connection:
        return connection.execute(
            "select source, queues, jobs, attempts, violations, possible from trioboss.history_audit"
        ).fetchall()


def test_what_a_queue_really_does_is_no_violation(spark, lived):
    found = audit(Source(dsn=lived), spark=spark)

    assert found.findings == []
    assert found.is_clean
    assert found.jobs > 10
    assert found.attempts > 4
    assert kept_audits(lived) == [("database", [], found.jobs, found.attempts, {}, {})]


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
    ((source, queues, _, _, violations, _),) = kept_audits(lived)
    assert (source, queues) == ("database", ["singleton"])
    assert violations["overlap"] >= 1


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
    assert ["nosuch"] not in [queues for _, queues, *_ in kept_audits(lived)]


def test_a_dead_letter_job_that_is_nowhere_is_possibly_missing(spark, dsn, sync_boss, monkeypatch, capsys):
    sync_boss.create_queue("dead")
    sync_boss.create_queue("q", dead_letter="dead", retry_limit=0)
    for _ in range(3):
        sync_boss.send("q", {})
        (job,) = sync_boss.fetch("q")
        sync_boss.fail("q", job, "no")
    (ended,) = sync_boss.fetch("dead")
    sync_boss.complete("dead", ended)
    (deleted, queued) = sync_boss.find_jobs("dead", state="created")
    sync_boss.delete_job("dead", deleted.id)

    done = audit(Source(dsn=dsn), spark=spark)
    monkeypatch.setattr(audit_job, "audit", lambda *given, **more: done)
    assert audit_job.main(["--dsn", dsn, "--strict"]) == 1
    capsys.readouterr()
    assert audit_job.main(["--dsn", dsn]) == 0
    out = capsys.readouterr().out

    assert "no dead letter (possible): no dead letter job in dead, unless it was deleted" in out
    assert f"job {deleted.source_id}" in out
    assert str(queued.source_id) not in out
    assert "no violation, 1 possible violation (1 no dead letter)" in out


def test_a_dead_letter_job_of_another_queue_that_ended_after_the_period_is_found(spark, dsn, sync_boss):
    sync_boss.create_queue("dead")
    sync_boss.create_queue("q", dead_letter="dead", retry_limit=0)
    sync_boss.send("q", {})
    (job,) = sync_boss.fetch("q")
    sync_boss.fail("q", job, "no")
    (dead_letter,) = sync_boss.fetch("dead")
    sync_boss.complete("dead", dead_letter)
    after_failure = dead_letter.created_on + timedelta(microseconds=1)

    found = audit(Source(dsn=dsn, queues=["q"], until=after_failure), spark=spark)

    assert (found.jobs, found.violations, found.possible) == (1, {}, {})


def test_a_missing_dead_letter_job_is_found_in_a_lake_too(spark, dsn, sync_boss, database, tmp_path):
    sync_boss.create_queue("dead")
    sync_boss.create_queue("q", dead_letter="dead", retry_limit=0)
    for _ in range(2):
        sync_boss.send("q", {})
        (job,) = sync_boss.fetch("q")
        sync_boss.fail("q", job, "no")
        (dead_letter,) = sync_boss.fetch("dead")
        sync_boss.complete("dead", dead_letter)
    database.execute("delete from trioboss.archive where id = %s", [dead_letter.id])
    archive(dsn, tmp_path, spark=spark)

    found = audit(Source(lake=tmp_path, queues=["q"]), spark=spark)

    assert (found.violations, found.possible) == ({}, {"no dead letter": 1})
    assert [finding.job for finding in found.findings] == [str(job.id)]


def test_files_that_a_lake_has_lost_are_found_and_the_others_audited(spark, lived, tmp_path):
    archive(lived, tmp_path, spark=spark)
    attempts, jobs = sorted(files_of_lake(tmp_path))
    (tmp_path / attempts).unlink()

    found = audit(Source(lake=tmp_path, dsn=lived), spark=spark)

    assert found.violations["lake file"] == 1
    kept = (str(tmp_path), [], found.jobs, 0, dict(found.violations), dict(found.possible))
    assert kept in kept_audits(lived)
    assert str(found.findings[0]) == f"lake file: {attempts} is missing"
    assert found.jobs > 10
    assert jobs.startswith("jobs/")


def forge(dsn, id, started_on):
    """Let an archived job have started when another ran."""
    with psycopg.connect(dsn) as connection:
        connection.execute("update trioboss.archive set started_on = %s where id = %s", (started_on, id))
