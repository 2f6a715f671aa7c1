"""The drawing of a job's way names the statements that a job really executes."""

import re

import trio

import trioboss
from docs.drawings.way import list_statements
from trioboss.testing import temporary_server

# Statements that may be sent meanwhile and are not part of the job's way: settings of queues, callers that wait.
OTHERS = {"get_queues", "notify", "notify_waiters", "poll"}


def executed(log: str) -> list[str]:
    """The names of the prepared statements in a log of the server, in their order."""
    return [name for name in re.findall(r"\bexecute (\w+): ", log) if name not in OTHERS]


async def wait_for(server, begin: int, *names: str) -> list[str]:
    """The statements since ``begin``, up to the first that have these names, one after the other."""
    while True:
        found = executed(server.log.read_text("utf-8")[begin:])
        for end in range(len(names), len(found) + 1):
            if found[end - len(names) : end] == [*names]:
                return found[:end]
        await trio.sleep(0.01)


async def test_a_job_executes_the_statements_that_are_drawn():
    async def handler(job: trioboss.RunningJob) -> None:
        pass

    with temporary_server(log_statement="all") as server, trio.fail_after(60):
        # The queue is there before the worker begins: a worker claims once more when a queue has changed.
        async with trioboss.open_boss(server.dsn) as boss:
            await boss.create_queue("jobs")
        begin = len(server.log.read_text("utf-8"))
        # Without maintenance and schedules: their statements are not those of a job.
        async with trioboss.open_boss(server.dsn, supervise=False, schedule=False) as boss:
            await boss.work("jobs", handler)
            await boss.wait_listening()
            await wait_for(server, begin, "find_next_due")  # the last statement before a dispatcher waits
            begin = len(server.log.read_text("utf-8"))
            # With a priority: a plain job that is alone has a shorter way, by send_and_notify.sql.
            await boss.send("jobs", priority=1)

            assert await wait_for(server, begin, "complete", "claim") == list_statements()
