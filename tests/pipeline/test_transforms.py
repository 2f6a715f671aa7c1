"""Each transform, on so few rows that a reader can count them."""

import pytest
from history_rows import make_attempts, make_jobs, table
from pyspark.sql import functions as F

from trioboss.pipeline.transforms import hours
from trioboss.pipeline.transforms.attempts import all_attempts
from trioboss.pipeline.transforms.ends import last_ends
from trioboss.pipeline.transforms.errors import error_groups, error_line, fingerprint
from trioboss.pipeline.transforms.rankings import (
    dead_letters,
    hottest_keys,
    jobs_by_queue,
    retry_cost,
    slowest_jobs,
)
from trioboss.pipeline.transforms.times import MOST_HOURS


@pytest.fixture(scope="module")
def jobs(spark):
    """Ten jobs of two queues, in the first three hours of a day."""
    return make_jobs(
        spark,
        {"id": "a", "created_on": 0, "started_on": 1, "completed_on": 3, "singleton_key": "x"},
        {"id": "b", "created_on": 10, "started_on": 12, "completed_on": 13, "singleton_key": "x"},
        {"id": "c", "created_on": 20, "started_on": 23, "completed_on": 24, "singleton_key": "y"},
        {"id": "d", "created_on": 30, "started_on": 110, "completed_on": 130},
        {"id": "e", "created_on": 50, "start_after": 55, "started_on": 59, "completed_on": 61, "attempt": 2},
        {
            "id": "f",
            "created_on": 65,
            "start_after": 70,
            "started_on": 71,
            "completed_on": 72,
            "state": "failed",
            "attempt": 2,
            "dead_letter": "dead",
        },
        {"id": "g", "created_on": 66, "completed_on": 67, "state": "cancelled", "attempt": 0},
        {"id": "h", "queue": "r", "created_on": 0, "started_on": 0, "completed_on": 30},
        {"id": "i", "queue": "r", "created_on": 0, "started_on": 0, "completed_on": 60},
        {
            "id": "k",
            "queue": "dead",
            "created_on": 72,
            "started_on": 80,
            "completed_on": 81,
            "source_queue": "q",
        },
    ).cache()


@pytest.fixture(scope="module")
def attempts(spark):
    """The three attempts of those jobs that did not end well, and one that was given back."""
    return make_attempts(
        spark,
        {"job_id": "e", "started_on": 51, "ended_on": 52, "error": '{"name": "E", "message": "after 7 s"}'},
        {
            "job_id": "f",
            "started_on": 66,
            "ended_on": 68,
            "error": '{"name": "E", "message": "after 30.5 s"}',
        },
        {"job_id": "f", "started_on": 71, "ended_on": 72, "attempt": 2, "outcome": "lost"},
        {"job_id": "d", "started_on": 31, "ended_on": 33, "outcome": "released"},
    ).cache()


@pytest.fixture(scope="module")
def every(jobs, attempts):
    return all_attempts(jobs, attempts).cache()


def test_an_attempt_is_a_row_of_its_own_or_a_completed_job(every):
    assert table(every.where("job_id in ('e', 'f', 'g')"), "job_id", "attempt", "started_on", "outcome") == [
        ("e", 1, 51, "failed"),
        ("e", 2, 59, "completed"),
        ("f", 1, 66, "failed"),
        ("f", 2, 71, "lost"),
    ]


def test_arrivals_count_in_the_hour_of_sending(jobs):
    found = hours.jobs_by_hour(jobs).where("arrivals > 0")

    assert table(found, "queue", "hour", "arrivals") == [
        ("dead", 60, 1),
        ("q", 0, 5),
        ("q", 60, 2),
        ("r", 0, 2),
    ]


def test_ends_count_in_the_hour_of_the_end_by_their_kind(jobs):
    counts = ("completions", "failures", "cancellations")

    assert table(hours.jobs_by_hour(jobs), "queue", "hour", *counts) == [
        ("dead", 60, 1, 0, 0),
        ("q", 0, 3, 0, 0),
        ("q", 120, 1, 0, 0),
        ("q", 60, 1, 1, 1),
        ("r", 0, 1, 0, 0),
        ("r", 60, 1, 0, 0),
    ]


def test_a_wait_is_from_when_a_job_could_start_to_its_start(jobs):
    of_q = hours.jobs_by_hour(jobs).where("queue = 'q' and wait is not null")

    assert table(of_q, "queue", "hour", "wait") == [
        ("q", 0, [120.0, 240.0, 240.0]),
        ("q", 60, [60.0, 4800.0, 4800.0]),
    ]


def test_the_oldest_grows_from_hour_to_hour_until_it_starts(jobs):
    of_q = hours.jobs_by_hour(jobs).where("queue = 'q' and oldest_age is not null")

    assert table(of_q, "hour", "oldest_age") == [(0, 1800.0), (60, 4800.0)]


def test_runs_count_every_attempt_in_the_hour_of_its_end(every):
    of_q = hours.attempts_by_hour(every).where("queue = 'q'")

    assert table(of_q, "hour", "run", "bad_ends", "releases") == [
        (0, [60.0, 120.0, 120.0], 1, 1),
        (120, [1200.0, 1200.0, 1200.0], 0, 0),
        (60, [120.0, 120.0, 120.0], 2, 0),
    ]


def test_a_run_across_hours_is_shared_among_them(every):
    found = hours.attempts_by_hour(every).where("queue <> 'dead'")

    assert table(found, "queue", "hour", "worker_seconds") == [
        ("q", 0, 2 * 60 + 60 + 60 + 60 + 60 + 120.0),
        ("q", 120, 600.0),
        ("q", 60, 60 + 120 + 60 + 600.0),
        ("r", 0, 1800 + 3600.0),
        ("r", 60, 0.0),
    ]


def test_concurrency_is_the_most_attempts_that_ran_at_once(every):
    assert table(hours.concurrency_by_hour(every).where("queue = 'r'")) == [("r", 0, 2)]


def test_concurrency_is_true_for_bursts_within_a_second(spark):
    """Three at once for a tenth of a second, twice; one follows the other; one runs into the next hour."""
    second = 1 / 60
    rows = [
        *(
            {"job_id": f"a{n}", "queue": "burst", "started_on": 10, "ended_on": 10 + second / 10}
            for n in range(3)
        ),
        *(
            {"job_id": f"b{n}", "queue": "burst", "started_on": 10 + second, "ended_on": 10 + 2 * second}
            for n in range(3)
        ),
        {"job_id": "c", "queue": "follow", "started_on": 10, "ended_on": 11},
        {"job_id": "d", "queue": "follow", "started_on": 11, "ended_on": 12},
        {"job_id": "e", "queue": "long", "started_on": 59, "ended_on": 61},
        {"job_id": "f", "queue": "long", "started_on": 60 + second, "ended_on": 60 + 2 * second},
    ]
    found = hours.concurrency_by_hour(all_attempts(make_jobs(spark), make_attempts(spark, *rows)))

    assert table(found) == [("burst", 0, 3), ("follow", 0, 1), ("long", 0, 1), ("long", 60, 2)]


def test_an_hour_that_attempts_run_right_through_has_their_concurrency(spark):
    rows = [{"job_id": name, "queue": "long", "started_on": 30, "ended_on": 240} for name in ("a", "b")]
    attempts = all_attempts(make_jobs(spark), make_attempts(spark, *rows))

    found = hours.by_hour(make_jobs(spark), attempts)

    assert table(found, "hour", "concurrency", "utilisation") == [
        (0, 2, 0.5), (120, 2, 1.0), (180, 2, 1.0), (240, 0, 0.0), (60, 2, 1.0),
    ]  # fmt: skip


def test_a_job_due_long_ago_waits_from_its_send_and_makes_no_hours(spark):
    ancient = {"start_after": -56 * 365 * 24 * 60, "created_on": 10, "started_on": 12, "completed_on": 13}
    endless = {"id": "k", "created_on": -56 * 365 * 24 * 60, "started_on": 12, "completed_on": 13}
    jobs = make_jobs(spark, *({"id": str(n), **ancient} for n in range(40)))
    old = make_jobs(spark, endless)

    assert table(hours.jobs_by_hour(jobs), "queue", "hour", "wait") == [("q", 0, [120.0, 120.0, 120.0])]
    assert table(hours.by_hour(jobs, all_attempts(jobs, make_attempts(spark))), "hour", "oldest_age") == [
        (0, 120.0)
    ]
    assert hours.jobs_by_hour(old).where("oldest_age is not null").count() == MOST_HOURS


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/New_York"])
def test_hours_are_hours_in_utc_whatever_the_session_zone_is(spark, jobs, every, zone):
    expected = table(hours.by_hour(jobs, every))
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        found = table(hours.by_hour(jobs, every))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")

    assert found == expected
    assert {hour for _, hour, *_ in found} == {0, 60, 120}


def test_all_hours_are_one_table_with_utilisation_of_the_slots_that_were_seen(jobs, every):
    columns = ("queue", "hour", "arrivals", "completions", "failures", "retries", "utilisation")

    assert table(hours.by_hour(jobs, every), *columns) == [
        ("dead", 60, 1, 1, 0, 0, round(60 / 3600, 6)),
        ("q", 0, 5, 3, 0, 1, round(480 / 3600, 6)),
        ("q", 120, 0, 1, 0, 0, round(600 / 3600, 6)),
        ("q", 60, 2, 1, 1, 1, round(840 / 3600, 6)),
        ("r", 0, 2, 1, 0, 0, 0.75),
        ("r", 60, 0, 1, 0, 0, 0.0),
    ]


def test_hours_shuffle_only_their_totals(jobs, every):
    """The plan sums up before every exchange, so what crosses it is one row a queue, hour and task."""
    plan = hours.by_hour(jobs, every)._jdf.queryExecution().executedPlan().toString()
    lines = [line.strip(" :+-*|") for line in plan.splitlines()]
    below = [
        lines[n + 1] for n, line in enumerate(lines) if line.startswith("Exchange hashpartitioning(queue")
    ]

    assert len(below) >= 4
    assert all(
        "HashAggregate" in line or "Project" in line or "Sort" in line or "Union" in line for line in below
    )
    assert "Join" not in plan


ERRORS = [
    ('{"name": "ValueError", "message": "no order 4711"}', "ValueError: no order <n>"),
    ('{"message": "4.5 of 1_000 left"}', "<n> of <n> left"),
    ('{"name": "KeyError", "message": ""}', "KeyError"),
    ('{"message": "job 0190aAbb-1111-2222-3333-444455556666 gone"}', "job <uuid> gone"),
    ('{"message": "connect to 10.0.0.17:5432 failed"}', "connect to <address> failed"),
    ('{"message": "connect to [fe80::1]:80"}', "connect to <address>"),
    ('{"message": "GET https://x.test/a?b=1 said 503"}', "GET <url> said <n>"),
    ('{"message": "<obj at 0x7f3a> and deadbeef0123"}', "<obj at <hex>> and <hex>"),
    ('{"message": "to a.b+c@x.test at 2026-03-02T10:11:12.5Z"}', "to <email> at <time>"),
    ('{"message": "line one\\nline two"}', "line one"),
    ('{"code": 5}', '{"code": <n>}'),
    ('"text"', '"text"'),
]


def test_the_same_error_with_other_numbers_has_one_fingerprint(spark):
    frame = spark.createDataFrame([(error,) for error, _ in ERRORS], "error string")

    found = [row[0] for row in frame.select(fingerprint(error_line(F.col("error")))).collect()]

    assert found == [expected for _, expected in ERRORS]


def test_errors_are_grouped_with_first_and_last_and_an_example(attempts):
    assert table(
        error_groups(attempts), "fingerprint", "count", "first_seen", "last_seen", "example", "last_job"
    ) == [
        ("(lost)", 1, 72, 72, "(lost)", "f"),
        ("E: after <n> s", 2, 52, 68, "E: after 30.5 s", "f"),
    ]


def test_keys_are_ranked_by_the_time_they_take(every):
    assert table(hottest_keys(every), "singleton_key", "attempts", "worker_seconds") == [
        ("x", 2, 180.0),
        ("y", 1, 60.0),
    ]


def test_a_slow_job_is_a_completed_one_with_its_last_run(jobs):
    slow = slowest_jobs(jobs).orderBy(F.desc("run")).limit(2)

    assert [(row["id"], row["run"], row["wait"]) for row in slow.collect()] == [
        ("i", 3600, 0),
        ("h", 1800, 0),
    ]


def test_retries_cost_the_time_of_attempts_that_did_not_complete(every):
    assert table(
        retry_cost(every).where("queue = 'q'"),
        "attempts",
        "wasted_attempts",
        "wasted_seconds",
        "lost_attempts",
    ) == [(9, 4, 360.0, 1)]


def test_a_queue_as_a_whole_is_its_jobs_by_their_end_and_their_waits(jobs):
    of_q = jobs_by_queue(jobs).where("queue = 'q'")

    assert table(
        of_q, "jobs", "completed", "failed", "cancelled", "wait_p50", "wait_p99", "first_end", "last_end"
    ) == [(7, 5, 1, 1, 120.0, 4800.0, 3, 130)]


def test_dead_letters_are_counted_where_they_come_from(jobs):
    assert table(dead_letters(jobs), "source", "dead_letter", "sent", "completed", "last_seen") == [
        ("q", "dead", 1, 1, 72)
    ]


def test_an_end_that_was_undone_is_not_the_last(spark):
    twice = make_jobs(
        spark,
        {"id": "a", "state": "failed", "completed_on": 5},
        {"id": "a", "state": "completed", "completed_on": 9, "attempt": 2},
        {"id": "b", "state": "failed", "completed_on": 6},
        {"id": "b", "state": "failed", "completed_on": 7, "seq": 2},
        {"id": "c", "state": "completed", "completed_on": 8},
    )

    assert table(last_ends(twice), "id", "completed_on") == [("a", 9), ("b", 6), ("b", 7), ("c", 8)]
