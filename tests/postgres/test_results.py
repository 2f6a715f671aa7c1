"""Results become Python values, in whatever thread they are read."""

import sys
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.pq import Format

from trioboss.postgres.wire.results import read_rows

ROWS = 300


@pytest.fixture
def impatient_threads():
    """Let threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def fetch(dsn, own):
    statement = f"select {own}, jsonb_build_array(n) from generate_series(1, {ROWS}) n"
    with psycopg.connect(dsn) as connection:
        return connection.pgconn.exec_params(statement.encode(), None, result_format=Format.BINARY)


@pytest.mark.usefixtures("impatient_threads")
def test_threads_that_read_at_the_same_time_read_each_its_own(server_dsn):
    results = [fetch(server_dsn, own) for own in range(4)]

    with ThreadPoolExecutor(len(results)) as threads:
        read = list(threads.map(lambda result: [read_rows(result) for _ in range(5)], results))

    for own, answers in enumerate(read):
        assert answers == [[(own, [n]) for n in range(1, ROWS + 1)]] * 5
