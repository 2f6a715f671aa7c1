"""The transaction of a job: its commit completes the job."""

import psycopg
import pytest
import trio
from worker_helpers import TIMEOUT

import trioboss


@pytest.fixture
async def notes(boss):
    """A table of the program's own; returns a function that reads it."""

    async def read():
        async with boss.transaction() as conn:
            return [row[0] for row in await (await conn.execute("SELECT text FROM note")).fetchall()]

    async with boss.transaction() as conn:
        await conn.execute("CREATE TABLE note (text text)")
    return read


async def write(conn, text="written"):
    await conn.execute("INSERT INTO note VALUES (%s)", [text])


async def test_the_commit_of_a_transaction_completes_the_job(notes, run_job):
    async def handle(job):
        async with job.transaction() as conn:
            await write(conn)
        return "does not count"

    job, counted = await run_job(handle)

    assert (job.state, job.output) == ("completed", None)
    assert await notes() == ["written"]
    assert counted == (1, 0, 0)


async def test_the_job_is_not_completed_before_the_commit(boss, run_job, notes):
    async def handle(job):
        async with job.transaction() as conn:
            await write(conn)
            assert (await boss.get_job_by_id("q", job.id)).state == "active"
            assert await notes() == []
        assert (await boss.get_job_by_id("q", job.id)).state == "completed"

    job, _ = await run_job(handle)

    assert job.state == "completed"


async def test_an_output_can_be_given_within_the_transaction(notes, run_job):
    async def handle(job):
        async with job.transaction() as conn:
            await write(conn)
            await job.complete({"written": 1}, conn=conn)

    job, counted = await run_job(handle)

    assert (job.output, await notes()) == ({"written": 1}, ["written"])
    assert counted == (1, 0, 0)


async def test_a_completion_within_the_transaction_is_part_of_it_without_naming_the_connection(
    boss, notes, run_job
):
    async def handle(job):
        async with job.transaction() as conn:
            await write(conn)
            await job.complete({"written": 1})
            assert (await boss.get_job_by_id("q", job.id)).state == "active"

    job, counted = await run_job(handle)

    assert (job.state, job.output, await notes()) == ("completed", {"written": 1}, ["written"])
    assert counted == (1, 0, 0)


@pytest.mark.parametrize("settle", ["complete", "fail"])
@pytest.mark.parametrize("by_id", [True, False])
async def test_nothing_is_committed_if_the_block_settles_the_job_on_another_connection(
    boss, notes, run_job, settle, by_id
):
    raised = []

    async def handle(job):
        try:
            async with job.transaction() as conn:
                await write(conn)
                await getattr(boss, settle)("q", job.id if by_id else job, "elsewhere")
        except trioboss.LeaseLost as error:
            raised.append(error)

    job, counted = await run_job(handle)

    assert await notes() == []
    assert [error.ids for error in raised] == [(job.id,)]
    assert job.state == ("completed" if settle == "complete" else "failed")
    assert counted == ((1, 0, 0) if settle == "complete" else (0, 1, 0))


async def test_a_failure_within_the_transaction_is_committed_with_it(boss, notes, run_job):
    async def handle(job):
        async with job.transaction() as conn:
            await write(conn, "why it failed")
            await boss.fail("q", job, "manually", conn=conn)

    job, counted = await run_job(handle)

    assert (job.state, job.output["message"], await notes()) == ("failed", "manually", ["why it failed"])
    assert counted == (0, 1, 0)


async def test_a_completion_that_a_savepoint_takes_back_is_made_again_at_the_end(notes, run_job):
    async def handle(job):
        async with job.transaction() as conn:
            await write(conn)
            try:
                async with conn.transaction():
                    await job.complete("taken back")
                    raise ValueError("to the savepoint")
            except ValueError:
                pass

    job, counted = await run_job(handle)

    assert (job.state, job.output, await notes()) == ("completed", None, ["written"])
    assert counted == (1, 0, 0)


async def test_a_transaction_within_the_transaction_of_the_job_is_refused(notes, run_job):
    async def handle(job):
        async with job.transaction() as conn:
            await write(conn)
            async with job.transaction():
                raise AssertionError

    job, _ = await run_job(handle)

    assert job.state == "failed"
    assert "has an open transaction already: use the connection of its block" in job.output["message"]
    assert await notes() == []


async def test_a_transaction_that_raises_leaves_neither_rows_nor_a_completion(notes, run_job):
    async def handle(job):
        async with job.transaction() as conn:
            await write(conn)
            raise ValueError("no")

    job, counted = await run_job(handle)

    assert (job.state, job.output["message"]) == ("failed", "no")
    assert await notes() == []
    assert counted == (0, 1, 0)


async def test_a_second_transaction_completes_the_job_that_the_first_one_did_not(notes, run_job):
    async def handle(job):
        for text in ("first", "second"):
            try:
                async with job.transaction() as conn:
                    await write(conn, text)
                    await job.complete(text, conn=conn)
                    if text == "first":
                        raise ValueError("rolled back")
            except ValueError:
                pass

    job, counted = await run_job(handle)

    assert (job.output, await notes()) == ("second", ["second"])
    assert counted == (1, 0, 0)


async def test_a_rolled_back_completion_does_not_keep_a_later_transaction_from_completing(
    boss, notes, run_job
):
    async def handle(job):
        try:
            async with boss.transaction() as conn:
                await job.complete("first", conn=conn)
                raise ValueError("rolled back")
        except ValueError:
            pass
        async with job.transaction() as conn:
            await write(conn)
        assert (await boss.get_job_by_id("q", job.id)).state == "completed"

    job, counted = await run_job(handle)

    assert (job.state, job.output, await notes()) == ("completed", None, ["written"])
    assert counted == (1, 0, 0)


@pytest.mark.parametrize("way", ["cancelled", "another attempt"])
async def test_nothing_is_committed_if_the_lease_is_lost(boss, dsn, notes, way):
    raised = []
    ended = trio.Event()

    async def handle(job):
        try:
            with trio.CancelScope(shield=True):
                async with job.transaction() as conn:
                    await write(conn)
                    if way == "cancelled":
                        await boss.cancel("q", job.id)
                    else:
                        take_over(dsn)
        except BaseException as error:
            raised.append(type(error))
            raise
        finally:
            ended.set()

    await boss.create_queue("q", retry_limit=0)
    await boss.work("q", handle)
    id = await boss.send("q")
    with trio.fail_after(TIMEOUT):
        await ended.wait()

    assert raised == [trioboss.LeaseLost]
    assert await notes() == []
    assert (await boss.get_job_by_id("q", id)).state != "completed"


def take_over(dsn):
    """Another worker has the job: the number of its attempt is another one."""
    with psycopg.connect(dsn) as conn:
        conn.execute("UPDATE trioboss.live_job SET attempt = attempt + 1, worker = gen_random_uuid()")


async def test_a_handler_may_go_on_after_its_transaction(boss, notes):
    went_on = trio.Event()

    async def handle(job):
        async with job.transaction() as conn:
            await write(conn)
        await trio.sleep(1.5)
        went_on.set()

    await boss.create_queue("q", heartbeat=1)
    await boss.work("q", handle)
    await boss.send("q")

    with trio.fail_after(TIMEOUT):
        await went_on.wait()


async def test_a_follow_up_in_the_transaction_is_sent_with_the_completion(boss, run_job):
    async def handle(job):
        async with job.transaction() as conn:
            await job.boss.send("short", "follow-up", conn=conn)

    await run_job(handle)

    assert (await boss.get_queue_stats("short")).ready == 1
