"""Each of the processes that Spark starts imports only what it needs: together they are the wait of a first query."""

import subprocess
import sys

import pytest

WRITING = {"adbc_driver_postgresql", "trioboss.pipeline.batch_writer"}
READING = {"psycopg", "numpy", "trioboss.pipeline.batch_reader"}


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import pyspark_trioboss", WRITING | READING),
        (
            "from trioboss.pipeline.source import TriobossSource as S; S({'dsn': 'dbname=x'}).schema()",
            WRITING | READING - {"psycopg"},
        ),
        ("import trioboss.pipeline.batch_reader", WRITING),
        ("import trioboss.pipeline.batch_writer", {"trioboss.pipeline.batch_reader"}),
    ],
    ids=["to find the source", "to ask for the columns", "to read", "to write"],
)
def test_a_process_does_not_import_the_other_side(code, unwanted):
    checked = f"{code}; import sys; print(*set(sys.modules) & {unwanted!r})"

    ran = subprocess.run(
        [sys.executable, "-c", checked], capture_output=True, text=True, check=True, timeout=120
    )

    assert ran.stdout.split() == []
