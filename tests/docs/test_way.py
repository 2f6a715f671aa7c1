"""The drawing and the reading list of a job's way name the statements, and the functions, that a job really runs."""

import ast
import logging
import re
import sys
from collections import defaultdict
from pathlib import Path

import trio

import trioboss
from docs.drawings.way import list_statements
from trioboss.testing import temporary_server

PACKAGE = Path(trioboss.__file__).parent
ROOT = PACKAGE.parent
GUIDE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
READING_LIST = GUIDE.partition("<!-- reading list -->")[2].partition("<!-- end -->")[0]
GROUND = GUIDE.partition("<!-- ground -->")[2].partition("<!-- end of the ground -->")[0]
MOST_FILES = 20
MOST_LINES = 1000

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


# -- the reading list


def listed_functions(text: str = READING_LIST) -> dict[str, set[str]]:
    """The names that the reading list has for each Python file."""
    found: dict[str, set[str]] = defaultdict(set)
    path = ""
    for name in re.findall(r"`([^`]+)`", text):
        if name.endswith(".py"):
            path = name
        elif not name.endswith(".sql"):
            found[path].add(name)
    return dict(found)


def count_lines(path: str, names: set[str]) -> int:
    """The lines of these functions, classes and tables of a file; each must be there."""
    found = defaultdict(int)
    for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8"))):
        name = getattr(node, "name", None)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        if name in names and hasattr(node, "end_lineno"):
            found[name] += node.end_lineno - node.lineno + 1
    assert set(found) == names, path
    return sum(found.values())


def test_the_reading_list_is_short():
    statements = [
        PACKAGE / "sql" / "statements" / name for name in re.findall(r"`([\w/]+\.sql)`", READING_LIST)
    ]
    functions = listed_functions()

    assert len(functions) <= MOST_FILES + 1  # and the states
    lines = sum(count_lines(path, names) for path, names in functions.items())
    assert lines + sum(len(file.read_text("utf-8").splitlines()) for file in statements) < MOST_LINES


def test_the_reading_list_has_every_statement_that_a_job_executes():
    named = {Path(name).stem for name in re.findall(r"`([\w/]+\.sql)`", READING_LIST)}

    # Also what is executed beside the drawn ones: before a dispatcher waits, and for callers that wait for a job.
    assert {*list_statements(), "find_next_due", "set_idle_marker", "notify_waiters"} <= named


def traced(called: dict[str, set[str]]):
    """A function for sys.setprofile that adds each call of a function of the package, by its file."""

    def trace(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            path = Path(frame.f_code.co_filename).relative_to(ROOT).as_posix()
            called.setdefault(path, set()).add(frame.f_code.co_name)

    return trace


async def trace_jobs(server, listed: dict[str, set[str]], count: int) -> list[set[str]]:
    """The files through which each of so many jobs ran. A job counts if all listed functions have run: with a
    notification that comes late, for instance, a job is found by a claim that was sent before.
    """

    async def handler(job: trioboss.RunningJob) -> int:
        return 1

    found: list[set[str]] = []
    async with trioboss.open_boss(server.dsn, supervise=False, schedule=False) as boss:
        await boss.work("jobs", handler)
        await boss.wait_listening()
        async with boss.events(trioboss.JobCompleted) as events:
            while len(found) < count:
                await boss.get_queue_stats("jobs")  # a pause: a send right after another one goes another way
                called: dict[str, set[str]] = {}
                sys.setprofile(traced(called))
                try:
                    await boss.send("jobs", 1)
                    await anext(events)
                finally:
                    sys.setprofile(None)
                if all(names <= called.get(path, set()) for path, names in listed.items()):
                    found.append(set(called))
    return found


async def test_a_job_runs_through_the_functions_of_the_reading_list_and_no_other_file(caplog):
    caplog.set_level(logging.CRITICAL, "trioboss")  # or its events are written as text, by other files
    # Functions in parentheses do not run for every job.
    listed = listed_functions(re.sub(r"\([^)]*\)", "", READING_LIST))
    del listed["trioboss/model/states.py"]
    with temporary_server() as server, trio.fail_after(60):
        async with trioboss.open_boss(server.dsn) as boss:
            await boss.create_queue("jobs")
        jobs = await trace_jobs(server, listed, 3)

    # A single job may run through more: it opens a connection, for instance. On a busy machine all of them may have a
    # timer that is late.
    busy = {"trioboss/actors/lag_monitor.py"}
    assert set.intersection(*jobs) - busy == set(listed) | set(re.findall(r"`(trioboss/[\w/]+\.py)`", GROUND))
