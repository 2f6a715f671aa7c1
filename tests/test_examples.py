"""Every example runs, and prints what it is about."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

EXPECTED = {
    "01_hello": "completed hello, world",
    "02_by_hand": "refused: the lease of job",
    "03_web_app": '{"size": [100, 100], "image": "cat.png"}',
    "04_orders_in_order": "blocked: ['order-3']",
    "05_throttled_emails": "debounced 1: kept for the next hour",
    "06_cron": "2 ticks",
    "07_dead_letters": "dead letter of payments True",
    "08_asyncio_handler": "from asyncio {'half': True}",
    "09_outbox": "committed: 1 e-mail",
    "10_sync_producer": "the worker would get {'order': 1} True",
    "11_plain_sql": "{'by': 'COPY', 'row': 2}",
    "13_typed_app": "e-mail {'shipped': 1}",
    "16_deploy_with_roles": "everything is as 'shop' declares it",
}
IN_A_SPARK = "12_backfill_to_report"  # that tests/pipeline/test_pipeline_example.py has


def test_every_example_is_listed_here_and_short():
    files = sorted(EXAMPLES.glob("*.py"))

    assert [file.stem for file in files] == sorted([*EXPECTED, IN_A_SPARK])
    assert all(len(file.read_text().splitlines()) < 60 for file in files)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_an_example_runs(name, dsn):
    run = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"],
        env=os.environ | {"TRIOBOSS_DSN": dsn},
        capture_output=True,
        text=True,
        timeout=240,
    )

    assert run.returncode == 0, run.stderr
    assert EXPECTED[name] in run.stdout
