"""Python values from results, read in several threads."""

import sys
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.pq import Format

from trioboss.postgres.wire import read_rows

ROWS = 300


@pytest.fixture
def frequent_thread_switches():
    """Let the interpreter switch threads as often as it can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def fetch(dsn, number):
    statement = f"select {number}, jsonb_build_array(n) from generate_series(1, {ROWS}) n"
    with psycopg.connect(dsn) as connection:
        return connection.pgconn.exec_params(statement.encode(), None, result_format=Format.BINARY)


@pytest.mark.usefixtures("frequent_thread_switches")
def test_threads_that_read_at_the_same_time_read_their_own_results(server_dsn):
    results = [fetch(server_dsn, number) for number in range(4)]

    with ThreadPoolExecutor(len(results)) as threads:
        read = list(threads.map(lambda result: [read_rows(result) for _ in range(5)], results))

    for number, rows in enumerate(read):
        assert rows == [[(number, [n]) for n in range(1, ROWS + 1)]] * 5
