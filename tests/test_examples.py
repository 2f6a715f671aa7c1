"""Every example runs, and prints what it is about."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

EXPECTED = {
    "01_hello": "completed hello, world",
    "02_fetch_and_complete": "refused: the lease of job",
    "03_web_app": '{"size": [100, 100], "image": "cat.png"}',
    "04_orders_in_order": (
        "blocked: ['order-2', 'order-3']\nstill blocked: []\n"
        "order-1 ['placed', 'paid', 'shipped', 'closed']\n"
        "order-2 ['placed', 'paid', 'closed']\n"  # the event that was deleted
        "order-3 ['placed', 'paid', 'shipped', 'closed']\n"  # the event that was retried
    ),
    "05_throttled_emails": "debounced 1: kept for the next hour",
    "06_cron": "2 ticks",
    "07_dead_letters": "dead letter of payments True",
    "08_asyncio_handler": "from asyncio {'half': True}",
    "09_outbox": "committed: 1 e-mail",
    "10_sync_producer": "the worker would get {'order': 1} True",
    "11_plain_sql": "{'by': 'COPY', 'row': 2}",
    "13_typed_app": "e-mail: order 2 is refunded",
    "15_restart_of_postgres": "Postgres is up again\nreport 0 of attempt 1\nreport 1 of attempt 1\n",
    "16_deploy_with_roles": (
        "run `trioboss migrate 16_deploy_with_roles:app` as the role that owns schema 'trioboss'\n"
        "1 change made\nby version 1\n"
        "update queue 'invoices': retry_limit 5 → 10\n1 change made\nby version 1\n"
        "exit code 0\nby version 2\n"
    ),
}
IN_A_SPARK = "12_backfill_to_report"  # that tests/pipeline/test_pipeline_example.py has
SERVICE = "14_web_service"  # runs until it gets a signal
TIMEOUT = 240


def test_every_example_is_listed_here_and_short():
    files = sorted(EXAMPLES.glob("*.py"))

    assert [file.stem for file in files] == sorted([*EXPECTED, IN_A_SPARK, SERVICE])
    assert all(len(file.read_text().splitlines()) < 90 for file in files)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_an_example_runs(name, dsn):
    run = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"],
        env=os.environ | {"TRIOBOSS_DSN": dsn},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )

    assert run.returncode == 0, run.stderr
    assert EXPECTED[name] in run.stdout


def test_the_program_of_the_readme_runs(dsn):
    """It is the one that tests/test_typing.py compares with the text of the README."""
    run = subprocess.run(
        [sys.executable, EXAMPLES.parent / "tests" / "typing" / "readme_1.py"],
        env=os.environ | {"TRIOBOSS_DSN": dsn},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )

    assert run.returncode == 0, run.stderr
    assert run.stdout == "completed hello, world\n"


@contextmanager
def run_service(dsn):
    """Run the web service; yield its process and a connection to it, by which no request was sent yet."""
    process = subprocess.Popen(
        [sys.executable, EXAMPLES / f"{SERVICE}.py"],
        env=os.environ | {"TRIOBOSS_DSN": dsn},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = re.search(r"http://([\d.]+):(\d+)", process.stderr.readline())
        with closing(http.client.HTTPConnection(address[1], int(address[2]), timeout=TIMEOUT)) as client:
            yield process, client
    finally:
        process.kill()
        process.communicate()


def until(condition):
    """Wait for something that sends no event."""
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def refuses(client):
    """Whether the server of a client accepts no new connection."""
    try:
        socket.create_connection((client.host, client.port)).close()
    except ConnectionRefusedError:
        return True
    return False


def test_the_web_service_answers_requests_and_ends_jobs_before_it_stops(dsn):
    with run_service(dsn) as (process, client), psycopg.connect(dsn) as other:
        # The job of the first order cannot end while this lock is held.
        other.execute("LOCK TABLE receipts")
        client.request("POST", "/orders", '"book"')
        response = client.getresponse()
        assert (response.status, response.read()) == (201, b'{"order":1}')
        until(lambda: other.execute("SELECT FROM pg_locks WHERE NOT granted").fetchone() is not None)
        # The second request is under way, as the answer 100 shows; its body is missing.
        client.putrequest("POST", "/orders")
        client.putheader("Content-Length", "6")
        client.putheader("Expect", "100-continue")
        client.endheaders()
        assert client.sock.recv(1000).startswith(b"HTTP/1.1 100")

        process.send_signal(signal.SIGTERM)
        until(lambda: refuses(client))
        client.send(b'"bike"')
        response = client.getresponse()
        assert (response.status, response.read()) == (201, b'{"order":2}')
        assert process.stdout.readline() == "all requests are answered\n"
        assert process.poll() is None
        other.commit()

        assert process.communicate(timeout=TIMEOUT)[0] == "all jobs have ended\n"
        assert process.returncode == 0
        assert (1,) in other.execute("SELECT id FROM receipts").fetchall()
        states = dict(other.execute("SELECT data ->> 'order', state FROM trioboss.all_jobs").fetchall())
        assert states["1"] == "completed"
        # The stop begins right after the answer: the job of the second order waits in Postgres (as `retry` if the
        # stopping worker had claimed and released it), or has run already.
        assert states["2"] in ("created", "retry", "completed")
