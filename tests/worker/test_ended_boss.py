"""Every method of a boss that has ended raises BossClosed, and so do the calls that were waiting when it ended."""

import inspect

import pytest
import trio
from worker_helpers import TIMEOUT

import trioboss
from trioboss.model.ids import make_id

ID = "00000000-0000-7000-8000-000000000000"


async def handler(job):
    pass


async def middleware(job, call_next):
    pass


# The values of required arguments, by their names: a method with another one fails the test until it is here.
VALUES = {
    **dict.fromkeys(("queue", "name", "queue_or_worker", "dead_letter_queue"), "q"),
    **dict.fromkeys(("id", "job_or_id", "id_or_ids"), ID),
    **dict.fromkeys(("data", "lifespan"), None),
    **dict.fromkeys(("after", "seconds"), 5),
    "callback": print,
    "cron": "* * * * *",
    "event": "event",
    "handler": handler,
    "jobs": [{"data": 1}],
    "key": "key",
    "middleware": middleware,
    "worker": make_id(),
}
MEMORY_ONLY = {"dsn", "schema", "is_pooled", "has_ended"}


def methods():
    return sorted(name for name in dir(trioboss.Boss) if not name.startswith("_") and name not in MEMORY_ONLY)


@pytest.fixture
async def ended(dsn):
    async with trioboss.open_boss(dsn, migrate=False) as boss:
        await boss.create_queue("q")
        await boss.send("q")  # the queue is cached: a send takes the short way
    return boss


@pytest.mark.parametrize("name", methods())
async def test_every_method_of_an_ended_boss_raises_at_once(ended, name):
    with (
        trio.fail_after(TIMEOUT / 10),
        pytest.raises(trioboss.BossClosed, match="this boss has ended: open another one"),
    ):
        await call(getattr(ended, name))


async def test_a_job_whose_boss_has_ended_raises_in_each_of_its_methods(dsn):
    jobs = []
    async with trioboss.open_boss(dsn, migrate=False) as boss:
        await boss.create_queue("q")
        id = await boss.send("q")

        async def keep(job):
            jobs.append(job)

        await boss.work("q", keep)
        with trio.fail_after(TIMEOUT):
            await boss.wait_for("q", id)

    [job] = jobs
    for name, arguments in {
        "touch": (),
        "extend": (5,),
        "progress": (1,),
        "complete": (),
        "transaction": (),
    }.items():
        with trio.fail_after(TIMEOUT), pytest.raises(trioboss.BossClosed, match="this boss has ended"):
            await enter(getattr(job, name)(*arguments))


@pytest.mark.parametrize("name", ["events", "follow", "transaction"])
async def test_a_block_of_an_ended_boss_that_was_made_before_its_end_raises(dsn, name):
    async with trioboss.open_boss(dsn, migrate=False) as boss:
        block = getattr(boss, name)(*(("q", ID) if name == "follow" else ()))

    with trio.fail_after(TIMEOUT), pytest.raises(trioboss.BossClosed, match="this boss has ended"):
        await enter(block)


async def call(method):
    """Call a method with what it requires."""
    await enter(method(*required(method)))


def required(method):
    """Values for the arguments that a method requires."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(method).parameters.values()
    return [
        VALUES[each.name] for each in parameters if each.kind in positional and each.default is each.empty
    ]


async def enter(answer):
    """Await an answer, or enter it if it is a context manager."""
    if inspect.isawaitable(answer):
        await answer
    elif hasattr(answer, "__aenter__"):
        await answer.__aenter__()


@pytest.mark.parametrize("wait", ["wait_for", "follow"])
async def test_a_call_that_waits_when_the_boss_ends_raises(dsn, wait):
    raised = []

    async def wait_for_ever(boss, id, waiting):
        try:
            if wait == "wait_for":
                waiting.set()
                await boss.wait_for("q", id)
            else:
                async with boss.follow("q", id) as updates:
                    async for _ in updates:
                        waiting.set()
        except trioboss.BossClosed as error:
            raised.append(error)

    with trio.fail_after(TIMEOUT):
        async with trio.open_nursery() as nursery, trioboss.open_boss(dsn, migrate=False) as boss:
            await boss.create_queue("q")
            waiting = trio.Event()
            nursery.start_soon(wait_for_ever, boss, await boss.send("q"), waiting)
            await waiting.wait()
            await trio.testing.wait_all_tasks_blocked(0.1)

    assert len(raised) == 1


async def test_a_handler_can_use_its_boss_until_it_has_ended(dsn):
    started = trio.Event()

    async def handle(job):
        started.set()
        await trio.sleep(0.3)
        await job.boss.send("q2", "in the grace of the stop")

    async with trioboss.open_boss(dsn, migrate=False) as boss:
        await boss.create_queue("q")
        await boss.create_queue("q2")
        await boss.work("q", handle)
        await boss.send("q")
        with trio.fail_after(TIMEOUT):
            await started.wait()

    with trioboss.SyncBoss(dsn, migrate=False) as sync_boss:
        assert sync_boss.get_queue_size("q2") == 1


SYNC_MEMORY_ONLY = {"close", "dsn", "schema"}


@pytest.mark.parametrize(
    "name",
    sorted(name for name in dir(trioboss.SyncBoss) if name[0] != "_" and name not in SYNC_MEMORY_ONLY),
)
def test_every_method_of_a_closed_sync_boss_raises(name):
    boss = trioboss.SyncBoss("host=/nowhere")
    boss.close()
    method = getattr(boss, name)
    with pytest.raises(trioboss.BossClosed, match="this SyncBoss is closed"):
        enter_blocking(method(*required(method)))


def enter_blocking(answer):
    """Enter an answer that is a context manager."""
    if hasattr(answer, "__enter__"):
        answer.__enter__()
