"""Whole workers: processes of their own on a database that each test has for itself."""

import pytest
import trio
from worker_helpers import Workers

import trioboss

QUEUES = {"short": 2, "long": 1, "stubborn": 2, "failing": 0, "blocking": 2, "graves": 2}


@pytest.fixture
async def boss(dsn):
    """It leads, and misses a worker sooner than usual. All queues are there."""
    async with trioboss.open_boss(dsn, migrate=False, presence_grace=2.0, grace=1.0) as boss:
        for name, retry_limit in QUEUES.items():
            await boss.create_queue(name, retry_limit=retry_limit)
        await boss.wait_listening()
        yield boss


@pytest.fixture
async def workers(dsn):
    """Starts worker processes, and leaves none behind."""
    async with trio.open_nursery() as nursery:
        started = Workers(nursery, dsn)
        yield started
        await started.kill()
        nursery.cancel_scope.cancel()
