"""Workers that declare the type of their data, and functions that send data of that type."""

import asyncio
import sys
import types
from datetime import UTC, datetime

import attrs
import pytest
import trio
from worker_helpers import TIMEOUT, next_of

import trioboss
from trioboss.events import JobFailed


@attrs.frozen
class Email:
    to: str
    copies: int = 1


@pytest.fixture
def app():
    return trioboss.App()


async def test_the_data_of_a_job_is_of_the_declared_type(app, dsn):
    @app.worker("email", data=Email)
    async def send_email(job):
        assert type(job.data) is Email
        assert job.data is job.data
        return [job.data.to, job.data.copies]

    async with trioboss.open_boss(dsn, migrate=False, app=app) as boss:
        id = await send_email.send(Email("ann"), priority=5)
        with trio.fail_after(TIMEOUT):
            job = await boss.wait_for("email", id)

    assert (job.data, job.output, job.priority) == ({"to": "ann", "copies": 1}, ["ann", 1], 5)


async def test_a_strict_pydantic_model_with_an_alias_survives_its_own_send(app, dsn):
    pydantic = pytest.importorskip("pydantic")

    class Order(pydantic.BaseModel, strict=True):
        number: int = pydantic.Field(alias="orderNumber")
        placed: datetime

    seen = []

    @app.worker("orders", data=Order)
    async def handle(job):
        seen.append(job.data)

    order = Order(orderNumber=7, placed=datetime(2026, 1, 2, tzinfo=UTC))
    async with trioboss.open_boss(dsn, migrate=False, app=app) as boss:
        id = await handle.send(order)
        with trio.fail_after(TIMEOUT):
            job = await boss.wait_for("orders", id)

    assert seen == [order]
    assert job.data == {"orderNumber": 7, "placed": "2026-01-02T00:00:00Z"}


async def test_data_that_does_not_fit_goes_to_the_dead_letter_queue_without_a_retry(app, boss):
    called = []

    @app.worker("email", data=Email, retry_limit=5, dead_letter="graves")
    async def send_email(job):
        called.append(job)

    await app.start(boss)
    async with boss.events(JobFailed) as events:
        id = await boss.send("email", {"to": 5})
        with trio.fail_after(TIMEOUT):
            job = await boss.wait_for("email", id)
            event = await next_of(JobFailed, events)

    assert not called
    assert (job.state, job.attempt, job.output["name"]) == ("failed", 1, "DataMismatch")
    message = f"job {id} in queue 'email' does not fit Email: data.to: 5 is not text"
    assert job.output["message"] == message
    assert (event.exception.path, event.exception.problem, event.exception.id) == (
        "data.to",
        "5 is not text",
        id,
    )
    (dead,) = await boss.find_jobs("graves")
    assert (dead.data, dead.source_id) == ({"to": 5}, id)


async def test_a_key_that_is_not_required_may_be_missing_where_annotations_are_postponed(
    app, boss, monkeypatch
):
    source = """
from __future__ import annotations
from typing import NotRequired, TypedDict
class Letter(TypedDict):
    to: str
    subject: NotRequired[str]
"""
    letters = types.ModuleType("letters")
    monkeypatch.setitem(sys.modules, "letters", letters)
    exec(source, letters.__dict__)

    @app.worker("letters", data=letters.Letter)
    async def deliver(job):
        return job.data

    await app.start(boss)
    with trio.fail_after(TIMEOUT):
        job = await boss.wait_for("letters", await boss.send("letters", {"to": "ann"}))
    assert (job.state, job.output) == ("completed", {"to": "ann"})


async def test_middleware_sees_data_that_does_not_fit(boss):
    seen = []

    async def observe(job, call_next):
        try:
            return await call_next(job)
        except trioboss.DataMismatch as error:
            seen.append(error.path)
            raise

    async def handle(job):
        pass

    await boss.create_queue("email", retry_limit=0)
    await boss.work("email", handle, data=Email, middleware=[observe])
    with trio.fail_after(TIMEOUT):
        await boss.wait_for("email", await boss.send("email", {}))

    assert seen == ["data.to"]


async def test_a_job_of_a_batch_that_does_not_fit_fails_alone(boss):
    async def handle(jobs):
        return {job.id: job.data.to for job in jobs}

    await boss.create_queue("email", retry_limit=3)
    good = await boss.send("email", {"to": "ann"})
    bad = await boss.send("email", {"to": None})
    await boss.work("email", handle, data=Email, batch_size=2)
    with trio.fail_after(TIMEOUT):
        assert (await boss.wait_for("email", good)).output == "ann"
        ended = await boss.wait_for("email", bad)
    assert (ended.state, ended.attempt, ended.output["name"]) == ("failed", 1, "DataMismatch")


@pytest.mark.parametrize("kind", ["thread", "asyncio"])
async def test_handlers_of_other_kinds_get_typed_data(boss, kind):
    async def in_asyncio(job):
        return job.data.to

    handler = in_asyncio if kind == "asyncio" else lambda job: job.data.to
    await boss.create_queue("email")
    await boss.work("email", handler, data=Email, **{kind: True})
    with trio.fail_after(TIMEOUT):
        assert (await boss.wait_for("email", await boss.send("email", {"to": "ann"}))).output == "ann"


# -- the decorated function


async def test_it_sends_with_the_boss_that_it_is_given(app, boss):
    @app.worker("email", data=Email)
    async def send_email(job):
        pass

    await boss.create_queue("email")
    async with boss.transaction() as conn:
        id = await send_email.send(Email("ann"), boss=boss, conn=conn)
    assert (await boss.get_job_by_id("email", id)).data["to"] == "ann"


async def test_without_a_boss_it_says_what_is_missing(app, dsn):
    @app.worker("email", data=Email)
    async def send_email(job):
        pass

    with pytest.raises(trioboss.UsageError, match="pass boss="):
        await send_email.send(Email("ann"))
    async with trioboss.open_boss(dsn, migrate=False, app=app):
        await send_email.send(Email("ann"))
    with pytest.raises(trioboss.UsageError, match="pass boss="):
        await send_email.send(Email("ann"))


@pytest.mark.parametrize("kind", ["trio", "thread", "asyncio"])
async def test_in_a_handler_it_sends_with_the_boss_that_runs_the_job(app, dsn, kind):
    @app.worker("follow-up", concurrency=1)
    async def follow_up(job):
        return job.boss.schema

    async def in_trio(job):
        return str(await follow_up.send(job.boss.schema))

    def in_thread(job):
        return trio.from_thread.run(in_trio, job)

    async def in_asyncio(job):
        import trio_asyncio

        return await trio_asyncio.trio_as_aio(in_trio)(job)

    handler = {"trio": in_trio, "thread": in_thread, "asyncio": in_asyncio}[kind]
    app.worker("first", **({} if kind == "trio" else {kind: True}))(handler)
    async with (
        trioboss.open_boss(dsn, schema="one", app=app) as one,
        trioboss.open_boss(dsn, schema="two", app=app) as two,
    ):
        for boss in (one, two):
            with trio.fail_after(TIMEOUT):
                first = await boss.wait_for("first", await boss.send("first"))
                assert (await boss.wait_for("follow-up", first.output)).output == boss.schema


async def test_outside_of_handlers_it_does_not_choose_between_several_bosses(app, dsn):
    @app.worker("email")
    async def send_email(job):
        pass

    async with trioboss.open_boss(dsn, schema="one", app=app) as one:
        async with trioboss.open_boss(dsn, schema="two", app=app):
            with pytest.raises(trioboss.UsageError, match=r"'email' runs on several bosses here: pass boss="):
                await send_email.send(None)
            id = await send_email.send(None, boss=one)
        assert await one.get_job_by_id("email", id) is not None
        assert await send_email.send(None) is not None


async def test_it_refuses_data_of_another_type(app, boss):
    @app.worker("email", data=Email)
    async def send_email(job):
        pass

    with pytest.raises(trioboss.UsageError, match=r"data: \{'to': 'ann'\} is not Email"):
        await send_email.send({"to": "ann"}, boss=boss)


async def test_it_is_the_handler_when_it_is_called(app):
    @app.worker("email")
    async def send_email(job):
        """Sends."""
        return job

    assert await send_email(5) == 5
    assert (send_email.__name__, send_email.__doc__, send_email.queue) == ("send_email", "Sends.", "email")


async def test_its_data_as_json_is_for_other_producers(app, sync_boss):
    @app.worker("email", data=Email)
    async def send_email(job):
        pass

    sync_boss.create_queue("email")
    id = sync_boss.send(send_email.queue, send_email.encode(Email("ann", 2)))
    assert sync_boss.get_job_by_id("email", id).data == {"to": "ann", "copies": 2}


async def test_a_pattern_has_no_queue_to_send_to(app, boss):
    @app.worker("mail/*")
    async def handle(job):
        pass

    with pytest.raises(trioboss.UsageError, match=r"'mail/\*' is a pattern"):
        await handle.send(None, boss=boss)


# -- declarations


def test_a_handler_that_is_not_async_is_refused_at_declaration_by_its_name(app):
    with pytest.raises(
        trioboss.UsageError, match=r"send_email is not an async function: write `async def`, or pass"
    ):

        @app.worker("email")
        def send_email(job):
            pass


def test_an_async_generator_is_refused_by_its_name(app):
    with pytest.raises(trioboss.UsageError, match=r"send_email is an async generator"):

        @app.worker("email")
        async def send_email(job):
            yield


@pytest.mark.parametrize("data", [Email("ann"), {"to": "ann", "copies": 1}])
async def test_a_schedule_takes_a_value_of_the_declared_type_or_its_json(app, boss, data):
    @app.schedule("0 3 * * *", data=data)
    @app.worker("email", data=Email)
    async def send_email(job):
        pass

    await app.start(boss)

    (schedule,) = await boss.get_schedules()
    assert schedule.data == {"to": "ann", "copies": 1}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "None is not Email"),
        ({"data": {"to": 5}}, r"\{'to': 5\} is not Email"),
        ({"data": 5}, "5 is not Email"),
    ],
)
def test_a_schedule_whose_jobs_would_all_fail_is_refused_at_declaration(app, options, problem):
    with pytest.raises(trioboss.UsageError, match=rf"schedule: every job would fail, .*'email'.*{problem}"):

        @app.schedule("0 3 * * *", **options)
        @app.worker("email", data=Email)
        async def send_email(job):
            pass


def test_a_schedule_may_have_no_data_if_its_worker_can_read_none(app):
    @app.schedule("0 3 * * *")
    @app.worker("email", data=Email | None)
    async def send_email(job):
        pass


def test_data_of_a_schedule_that_is_not_json_is_refused_at_declaration(app):
    with pytest.raises(trioboss.PayloadError, match=r"^data"):

        @app.schedule("0 3 * * *", data=Email("ann"))
        @app.worker("email")
        async def send_email(job):
            pass


async def gather() -> None:
    coroutine = asyncio.sleep(0)
    try:
        await asyncio.gather(coroutine)
    finally:
        coroutine.close()


@pytest.mark.parametrize(
    "call",
    [
        lambda: asyncio.sleep(0),
        lambda: asyncio.sleep(0.01),
        lambda: asyncio.Event().wait(),
        lambda: asyncio.to_thread(int),
        gather,
    ],
    ids=["sleep 0", "sleep", "event", "thread", "gather"],
)
async def test_a_handler_for_asyncio_is_told_what_to_write(boss, call):
    async def handle(job):
        await call()

    await boss.create_queue("q", retry_limit=0)
    await boss.work("q", handle)
    async with boss.events(JobFailed) as events:
        with trio.fail_after(TIMEOUT):
            job = await boss.wait_for("q", await boss.send("q"))
            event = await next_of(JobFailed, events)

    assert "declare it with asyncio=True" in job.output["notes"][0]
    assert "declare it with asyncio=True" in event.error
