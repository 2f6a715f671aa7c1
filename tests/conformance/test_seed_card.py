"""The user's design card."""

import tomllib

from conformance_rows import ROOT, row

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@row("card:4", "card:5", "card:6")
def test_dispatchers_and_heartbeats_are_tasks(seen):
    # The queue that was notified has its own dispatcher, which no timer woke; a long job has sent heartbeats.
    (dispatcher,) = seen.values["waking"].dispatchers

    assert dispatcher.woken_by_notify >= 1
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
