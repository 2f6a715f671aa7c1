"""Workers that are killed or stopped at exact places. One fixture does it all; each test checks one of them."""

import signal
from uuid import UUID

import attrs
import psycopg
import pytest
import trio
from fault_helpers import Programs, open_programs, until

import trioboss
from benchmarks.harness.proxy import Proxy, open_proxy
from trioboss.testing import temporary_database

QUEUES = ("a1", "a2", "a4", "a5", "a6", "a7")


@attrs.define
class Aftermath:
    """The jobs at the end, and the attempts that another worker made after the kills."""

    jobs: dict[str, list[trioboss.Job]] = attrs.field(factory=dict)
    reruns: dict[str, list[tuple[UUID, int]]] = attrs.field(factory=lambda: {queue: [] for queue in QUEUES})
    zombie_output: str = ""
    before: dict[str, int] = attrs.field(factory=dict)
    """How many jobs had completed when the worker was killed."""


@pytest.fixture(scope="module")
def aftermath(server_dsn, template):
    """Kill workers in six ways, and let another one finish their jobs."""
    with temporary_database(server_dsn, template) as dsn:
        return trio.run(kill_and_recover, dsn)


async def kill_and_recover(dsn: str) -> Aftermath:
    found = Aftermath()
    with trio.fail_after(90), psycopg.connect(dsn, autocommit=True) as owner:
        async with (
            trioboss.open_boss(dsn, migrate=False, presence_grace=2.0) as boss,
            open_programs() as programs,
            open_proxy(dsn) as proxy,
        ):
            ids = await send_all(boss)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(die_while_claiming, programs, dsn, owner)
                nursery.start_soon(die_at, programs, dsn, "a2", "after claim")
                nursery.start_soon(die_at, programs, dsn, "a4", "before settling")
                nursery.start_soon(die_while_completing, programs, proxy, owner, found)
                zombie = await programs.victim(dsn, "a7")
                await zombie.wait_for("began")
                zombie.process.send_signal(signal.SIGSTOP)
            await recover(boss, found, zombie, ids)
            for queue, sent in ids.items():
                found.jobs[queue] = [await boss.wait_for(queue, id) for id in sent]
            await zombie.wait_for("lost")
            found.zombie_output = zombie.output.decode()
    return found


async def send_all(boss):
    for queue in QUEUES:
        options = {"partition": True} if queue == "a1" else {"heartbeat": 1.0} if queue == "a7" else {}
        await boss.create_queue(queue, retry_limit=5, **options)
    ids = {queue: [await boss.send(queue)] for queue in ("a1", "a2", "a4", "a5")}
    ids["a6"] = await boss.insert("a6", ({} for _ in range(50)), return_ids=True)
    ids["a7"] = [await boss.send("a7", "long")]
    return ids


async def die_while_claiming(programs: Programs, dsn: str, owner) -> None:
    """Kill a worker whose claim waits for a lock, and then release the lock."""
    ((table,),) = owner.execute("select table_name from trioboss.queue where name = 'a1'").fetchall()
    with psycopg.connect(dsn) as blocker:
        blocker.execute(
            psycopg.sql.SQL("lock table trioboss.{} in share mode").format(psycopg.sql.Identifier(table))
        )
        victim = await programs.victim(dsn, "a1")
        waiting = (
            "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%%' || %s || '%%'"
        )
        await until(lambda: owner.execute(waiting, [table]).fetchall())
        await victim.kill()
        blocker.rollback()


async def die_at(programs: Programs, dsn: str, queue: str, place: str) -> None:
    victim = await programs.victim(dsn, queue, place)
    await victim.wait_for("paused")
    await victim.kill()


async def die_while_completing(programs: Programs, proxy: Proxy, owner, found: Aftermath) -> None:
    """Kill workers whose completions are committed, but whose replies were lost."""
    proxy.lose_replies_to = b"\0complete\0"
    victims = {queue: await programs.victim(proxy.dsn, queue) for queue in ("a5", "a6")}
    done = "select id from trioboss.archive where queue = %s"
    for queue, victim in victims.items():
        await until(lambda queue=queue: owner.execute(done, [queue]).fetchall())
        await victim.kill()
        found.before[queue] = len(owner.execute(done, [queue]).fetchall())


async def recover(boss, found: Aftermath, zombie, ids) -> None:
    """Work on all queues. The zombie is resumed while its successor runs."""

    async def handler(job: trioboss.Job) -> str:
        found.reruns[job.queue].append((job.id, job.attempt))
        if job.queue == "a7":
            zombie.process.send_signal(signal.SIGCONT)
            await zombie.wait_for("lost")
        return "rescuer"

    for queue in QUEUES:
        await boss.work(queue, handler, concurrency=10)


def outcome(found: Aftermath, queue: str) -> tuple[str, int, str]:
    (job,) = found.jobs[queue]
    return job.state, job.attempt, job.output


def test_A1_a_worker_killed_while_its_claim_waits_loses_no_job(aftermath):
    assert outcome(aftermath, "a1")[::2] == ("completed", "rescuer")
    assert len(aftermath.reruns["a1"]) == 1


def test_A2_a_worker_killed_between_claim_and_handler_loses_no_job(aftermath):
    assert outcome(aftermath, "a2") == ("completed", 2, "rescuer")


def test_A4_a_job_that_was_not_settled_runs_again_with_the_next_attempt_number(aftermath):
    (job,) = aftermath.jobs["a4"]

    assert outcome(aftermath, "a4") == ("completed", 2, "rescuer")
    assert aftermath.reruns["a4"] == [(job.id, 2)]


def test_A5_a_completion_whose_reply_is_lost_is_a_completion(aftermath):
    assert outcome(aftermath, "a5") == ("completed", 1, "victim")
    assert aftermath.reruns["a5"] == []


def test_A6_each_job_of_a_batch_is_completed_or_runs_again_but_never_both(aftermath):
    jobs = aftermath.jobs["a6"]
    rerun = {id for id, _ in aftermath.reruns["a6"]}

    assert [job.state for job in jobs] == ["completed"] * 50
    assert {job.id for job in jobs if job.output == "rescuer"} == rerun
    assert len(rerun) == len(aftermath.reruns["a6"]) <= 50 - aftermath.before["a6"]


def test_A7_a_zombie_that_resumes_while_its_successor_runs_writes_nothing(aftermath):
    assert outcome(aftermath, "a7")[::2] == ("completed", "rescuer")
    assert f"lost {aftermath.jobs['a7'][0].id}" in aftermath.zombie_output
