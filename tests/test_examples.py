"""Every example runs, and prints what it is about."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_spark import small_environment

EXAMPLES = Path(__file__).parent.parent / "examples"

EXPECTED = {
    "01_hello": "completed hello, world",
    "02_by_hand": "refused: the lease of job",
    "03_web_app": '{"size": [100, 100], "image": "cat.png"}',
    "04_orders_in_order": "order-3 ['placed', 'paid', 'shipped']",
    "05_throttled_emails": "debounced 1: kept for the next hour",
    "06_cron": "2 ticks",
    "07_dead_letters": "dead letter of payments True",
    "08_asyncio_handler": "from asyncio {'half': True}",
    "09_outbox": "committed: 1 e-mail",
    "10_sync_producer": "the worker would get {'order': 1} True",
    "11_plain_sql": "{'by': 'COPY', 'row': 2}",
    "12_backfill_to_report": "audit: 0 violations in 200 jobs",
}


def test_every_example_is_listed_here_and_short():
    files = sorted(EXAMPLES.glob("*.py"))

    assert [file.stem for file in files] == sorted(EXPECTED)
    assert all(len(file.read_text().splitlines()) < 60 for file in files)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_an_example_runs(name, dsn, tmp_path):
    if name == "12_backfill_to_report":
        pytest.importorskip("pyspark", reason="no pyspark: pip install 'trioboss[spark]'")
    environment = os.environ | small_environment(tmp_path) | {"TRIOBOSS_DSN": dsn}
    run = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )

    assert run.returncode == 0, run.stderr
    assert EXPECTED[name] in run.stdout
