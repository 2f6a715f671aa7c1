"""Whole workers: processes of their own, with a database for each test."""

import pytest
import trio
from worker_helpers import TIMEOUT, Workers

import trioboss
from trioboss.cli import main

QUEUES = {"short": 2, "long": 1, "stubborn": 2, "failing": 0, "blocking": 2, "graves": 2}


@pytest.fixture
async def boss(dsn):
    """A boss that leads, with a short presence grace. All queues are created."""
    async with trioboss.open_boss(dsn, migrate=False, presence_grace=2.0, grace=1.0) as boss:
        for name, retry_limit in QUEUES.items():
            await boss.create_queue(name, retry_limit=retry_limit)
        await boss.wait_listening()
        yield boss


@pytest.fixture
async def workers(dsn):
    """Starts worker processes, and ends them all."""
    async with trio.open_nursery() as nursery:
        started = Workers(nursery, dsn)
        yield started
        await started.kill()
        nursery.cancel_scope.cancel()


@pytest.fixture
def queue(sync_boss):
    """The name of a queue, with one job."""
    sync_boss.create_queue("mail", retry_limit=0)
    return "mail"


@pytest.fixture
def run(dsn, capsys):
    """Run a command on the test's database; return its exit code, its output and its error messages."""

    def run(command, *arguments, dsn=dsn):
        try:
            code = main([command, *arguments, *(["--dsn", dsn] if dsn else [])])
        except SystemExit as exit:  # argparse
            code = exit.code
        printed, errors = capsys.readouterr()
        assert "Traceback" not in errors
        return code, printed, errors

    return run


@pytest.fixture
def run_job(boss):
    """Run a handler on one job; return the ended job and the counters of its worker."""

    async def run_job(handler, **options):
        await boss.create_queue("q", retry_limit=0)
        worker = await boss.work("q", handler, **options)
        id = await boss.send("q", "input")
        with trio.fail_after(TIMEOUT):
            job = await boss.wait_for("q", id)
            await boss.off_work(worker)
        ((counted),) = worker.statistics().dispatchers
        return job, (counted.completed, counted.failed, counted.lost)

    return run_job
