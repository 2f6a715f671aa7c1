"""The report and the audit find exactly the facts that a synthetic history was made with."""

from argparse import Namespace
from collections import Counter
from contextlib import nullcontext
from datetime import UTC, datetime

import pytest
from lake_steps import NoSpark

from trioboss.errors import UsageError
from trioboss.pipeline.files import open_files
from trioboss.pipeline.history import Source
from trioboss.pipeline.jobs import synth as synth_job
from trioboss.pipeline.jobs.audit import audit
from trioboss.pipeline.jobs.report import report
from trioboss.pipeline.jobs.synth import synth, synth_load
from trioboss.pipeline.manifest import Manifest
from trioboss.pipeline.synthetic.planted import plant
from trioboss.pipeline.synthetic.shapes import SHAPES, facts_of, kind_of, run_of

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return tmp_path_factory.mktemp("synth") / "lake"


@pytest.fixture(scope="module")
def made(spark, lake):
    """Twelve hours, so that a Parquet file a day and queue is a file a queue; and a task writes as many as it has."""
    parallelism = "spark.sql.leafNodeDefaultParallelism"
    spark.conf.set(parallelism, 1)
    made = synth(1234, lake, spark=spark, days=0.5, begin=BEGIN, violations=2)
    spark.conf.unset(parallelism)
    return made


@pytest.fixture(scope="module")
def reported(spark, lake, made, tmp_path_factory):
    return report(Source(lake=lake), tmp_path_factory.mktemp("out"), spark=spark, top=1000)


@pytest.fixture(scope="module")
def audited(spark, lake, made):
    return audit(Source(lake=lake), spark=spark)


@pytest.mark.soak
def test_every_planted_violation_is_found_and_nothing_else(made, audited):
    found = Counter((f.kind, f.queue, f.job, f.other_job) for f in audited.findings)
    planted = Counter((v.kind, v.queue, v.job, v.other_job) for v in made.violations)

    assert found == planted
    assert {v.kind for v in made.violations} == {
        "overlap", "order", "passed a retry", "over the limit", "two ends", "no end", "early start", "early retry",
        "end before start", "start before send", "waiting together", "retries left", "two dead letters",
    }  # fmt: skip
    assert audited.violations == Counter(v.kind for v in made.violations)
    assert not audited.possible
    assert not audited.is_clean


def test_a_job_planted_without_an_end_is_sent_after_an_attempt_on_record():
    """Else an audit does not judge it, where the other jobs are few."""
    planted = plant(1, BEGIN, 1)
    (violation,) = (violation for violation in planted.violations if violation.kind == "no end")
    (job,) = (job for job in planted.jobs if job["id"] == violation.job)

    assert job["created_on"] >= min(attempt["ended_on"] for attempt in planted.attempts)


@pytest.mark.soak
def test_the_report_of_each_queue_is_what_was_said_beforehand(made, reported):
    queues = {queue["queue"]: queue for queue in reported.queues}
    for name, facts in made.queues.items():
        queue = queues[name]
        assert (queue["jobs"], queue["completed"], queue["failed"]) == (
            facts.jobs,
            facts.completed,
            facts.failed,
        )
        assert queue["attempts"] == facts.attempts.total()
        assert queue["failed_attempts"] == facts.attempts["failed"]
        assert queue["lost_attempts"] == facts.attempts["lost"]
        assert queue["released_attempts"] == facts.attempts["released"]
        assert queue["worker_seconds"] == pytest.approx(facts.worker_time / 1000, abs=1e-6)
        assert queue["wasted_seconds"] == pytest.approx(facts.wasted_time / 1000, abs=1e-6)
        for share in (50, 95, 99):
            assert queue[f"run_p{share}"] == facts.percentile("runs", share / 100) / 1000
            assert queue[f"wait_p{share}"] == facts.percentile("waits", share / 100) / 1000


@pytest.mark.soak
def test_the_hours_add_up_to_what_was_said_beforehand(made, reported):
    for name, facts in made.queues.items():
        points = [point for point in reported.points if point["queue"] == name]
        assert sum(point["arrivals"] for point in points) == facts.jobs
        assert sum(point["completions"] for point in points) == facts.completed
        assert sum(point["failures"] for point in points) == facts.failed
        assert sum(point["retries"] for point in points) == (
            facts.attempts["failed"] + facts.attempts["lost"] - facts.failed
        )
        assert sum(point["worker_seconds"] for point in points) == pytest.approx(
            facts.worker_time / 1000, abs=1e-6
        )


@pytest.mark.soak
def test_errors_and_dead_letters_are_those_that_were_planted(made, reported):
    found = {(error["queue"], error["fingerprint"]): error["count"] for error in reported.errors}
    said = {(queue, text): n for queue, facts in made.queues.items() for text, n in facts.errors.items()}

    assert {key: n for key, n in found.items() if key[0] in made.queues} == said
    dead = [d for d in reported.dead_letters if d["source"] in made.queues]
    assert [(d["source"], d["dead_letter"], d["sent"], d["completed"]) for d in dead] == [
        ("webhooks", "dead", made.dead_letters, made.dead_letters)
    ]


@pytest.mark.soak
def test_the_hottest_keys_and_the_slowest_job_are_known(made, reported):
    shape, jobs = SHAPES[3], made.queues["sync"].jobs
    lines, time = shape.lines(jobs, 43200), Counter()
    for number in range(jobs):
        tries = 1 if kind_of(shape, number) == "plain" else 2
        time[f"customer-{number % lines}"] += tries * run_of(shape, number, lines)
    found = [(key["singleton_key"], key["worker_seconds"]) for key in reported.keys if key["queue"] == "sync"]

    assert dict(found) == pytest.approx({key: milliseconds / 1000 for key, milliseconds in time.items()})
    assert found[0][0] == time.most_common(1)[0][0]
    slowest = next(job for job in reported.slowest if job["queue"] in made.queues)
    assert (slowest["queue"], slowest["run"]) == ("reports", max(made.queues["reports"].runs) / 1000)


@pytest.mark.soak
def test_a_job_whose_end_was_undone_counts_once(reported):
    points = [point for point in reported.points if point["queue"] == "clean/retried"]
    (queue,) = (queue for queue in reported.queues if queue["queue"] == "clean/retried")

    assert sum(point["arrivals"] for point in points) == 2
    assert sum(point["failures"] + point["completions"] for point in points) == 2
    assert (queue["jobs"], queue["completed"], queue["failed"]) == (2, 2, 0)


def test_facts_of_cycles_are_the_facts_of_all_jobs_one_by_one():
    shape = SHAPES[1]
    facts = facts_of(shape, 12_345, 86400)

    assert facts.jobs == 12_345
    assert facts.failed == sum(kind_of(shape, n) == "dead" for n in range(12_345))
    assert facts.runs.total() == facts.attempts.total()


def test_a_lake_that_is_there_is_not_written_over(tmp_path):
    Manifest(open_files(None, tmp_path)).create(None)

    with pytest.raises(UsageError, match="there is a lake"):
        synth(10, tmp_path, spark=NoSpark())


def test_rows_for_a_load_have_the_columns_that_load_takes(spark, tmp_path):
    assert synth_load(20, tmp_path / "rows.parquet", spark=spark) == 20

    rows = spark.read.parquet(str(tmp_path / "rows.parquet"))
    assert rows.columns == ["data", "priority", "singleton_key"]
    assert rows.count() == 20


def test_the_command_says_what_is_in_it(monkeypatch, capsys):
    """A history that is not made, because to make one takes seconds."""
    asked, made = [], synth_job._known(1234, 0.5, plant(2, BEGIN, 1).violations)
    monkeypatch.setattr(
        synth_job, "open_run", lambda *_, **__: nullcontext(Namespace(spark=None, progress=None))
    )
    monkeypatch.setattr(
        synth_job, "synth", lambda *given, **more: asked.append((given, more["days"])) or made
    )

    assert synth_job.main(["--jobs", "1234", "--to", "lake", "--days", "0.5"]) == 0

    assert asked == [((1234, "lake"), 0.5)]
    assert (
        f"{made.dead_letters} dead letter jobs, {len(made.violations)} violations" in capsys.readouterr().out
    )
