"""The user's design card."""

import tomllib

from conformance_rows import ROOT, row

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@row("card:1")
def test_notifications_trigger_the_claims(seen):
    # Three jobs: two of plain SQL, in one commit, which notifies; and a deferred one, which a timer starts.
    (dispatcher,) = seen.values["waking"].dispatchers

    assert dispatcher.claimed == 3
    assert dispatcher.woken_by_notify > dispatcher.woken_by_poll


@row("card:4")
def test_each_queue_of_a_pattern_has_a_dispatcher_of_its_own(seen):
    assert sorted(seen.values["dispatchers"]) == ["report-b-5", "report-c5"]


@row("card:5", "card:6")
def test_a_job_that_runs_for_long_has_sent_heartbeats(seen):
    assert seen.values["beat"].heartbeat_on is not None


@row("card:8", "card:9")
def test_the_packages_that_were_asked_for_are_used():
    names = " ".join(PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test-core"])

    for package in ("trio>", "trio-asyncio", "psycopg", "attrs", "croniter", "hypothesis", "pytest-trio"):
        assert package in names


@row("card:10")
def test_the_layout_is_the_one_that_was_asked_for():
    for name in ("pyproject.toml", "README.md", "trioboss", "tests", "benchmarks", "examples"):
        assert (ROOT / name).exists()
