"""Whole workers: processes of their own on a database that each test has for itself."""

import signal

import pytest
import trio
from worker_helpers import Workers

import trioboss
from trioboss.cli import main

QUEUES = {"short": 2, "long": 1, "stubborn": 2, "failing": 0, "blocking": 2, "graves": 2}


@pytest.fixture(scope="session", autouse=True)
def obedience():
    """Whoever runs in the background ignores some signals, and processes that it starts would, too."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


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


@pytest.fixture
def queue(sync_boss):
    """The name of a queue, with one job."""
    sync_boss.create_queue("mail", retry_limit=0)
    return "mail"


@pytest.fixture
def run(dsn, capsys):
    """Run a command on the test's database; return its exit code, what it printed and what it complained of."""

    def run(command, *arguments, dsn=dsn):
        try:
            code = main([command, *arguments, *(["--dsn", dsn] if dsn else [])])
        except SystemExit as exit:  # argparse
            code = exit.code
        printed, complained = capsys.readouterr()
        assert "Traceback" not in complained
        return code, printed, complained

    return run
