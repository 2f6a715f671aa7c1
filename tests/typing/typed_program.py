"""A program that is checked, and never run: what type checkers know about trioboss, and the mistakes they find.

Each ``# type: ignore`` is a mistake that has to be found: mypy and pyright report one that is not needed.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypedDict, assert_type
from uuid import UUID

import attrs
import psycopg
from pydantic import BaseModel

import trioboss
from trioboss import (
    AsyncioJob,
    Boss,
    BossStatistics,
    CallerConnection,
    CallNext,
    Handler,
    Job,
    JobCompleted,
    JobFailed,
    JobUpdate,
    LateError,
    QueueOptions,
    RunningJob,
    SendOptions,
    SyncBoss,
    Task,
    ThreadJob,
    Worker,
    WorkerStatistics,
)


@attrs.frozen
class Email:
    to: str


@dataclass
class Order:
    number: int


class Options(TypedDict):
    limit: int


class Model(BaseModel):
    text: str


@asynccontextmanager
async def lifespan(boss: Boss) -> AsyncIterator[int]:
    yield 5


async def middleware(job: RunningJob, call_next: CallNext) -> object:
    return await call_next(job)


app = trioboss.App(lifespan=lifespan, middleware=[middleware])
app.queue("failed", retention=3600)
app.queue("failed", retries=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


# -- the data of handlers


@app.worker("email", data=Email, concurrency=5, retry_limit=3)
async def send_email(job: RunningJob[Email]) -> None:
    assert_type(job.data, Email)
    assert_type(job.boss, Boss)
    assert_type(job.attempt, int)
    assert_type(job.id, UUID)
    assert job.data.colour  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue,reportUnknownMemberType]
    assert job.colour  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue,reportUnknownMemberType]
    async with job.transaction() as conn:
        await conn.execute("SELECT 1")
        await job.complete({"done": [1]}, conn=conn)
    raise job.retry(delay=5)


@app.worker("order", data=Order)
async def take_order(job: RunningJob[Order]) -> int:
    assert_type(job.data, Order)
    return job.data.number


@app.schedule("0 3 * * *", tz="Europe/Berlin", data={"limit": 5}, missed="latest")
@app.worker("options", data=Options, batch_size=10)
async def work_on_options(jobs: list[RunningJob[Options]]) -> dict[UUID, int]:
    return {job.id: job.data["limit"] for job in jobs}


@app.worker("model", data=Model, thread=True)
def print_model(job: ThreadJob[Model]) -> None:
    assert_type(job.data, Model)
    job.progress(0.5)


@app.worker("in-asyncio", data=list[int], asyncio=True)
async def add(job: AsyncioJob[list[int]]) -> int:
    await job.progress(0.5)
    return sum(job.data)


@app.worker("models", data=Model, batch_size=10, thread=True)
def print_models(jobs: list[ThreadJob[Model]]) -> None:
    assert_type(jobs[0].data, Model)


@app.worker("sums", data=list[int], batch_size=10, asyncio=True)
async def add_all(jobs: list[AsyncioJob[list[int]]]) -> None:
    assert_type(jobs[0].data, list[int])


@app.worker("wrong", data=Model, batch_size=10, thread=True)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
def takes_one_of_a_batch(job: ThreadJob[Model]) -> None: ...


@app.schedule("@daily", data=Email("ann"))
@app.schedule("@hourly", data={"to": "ann"})
@app.worker("reminder", data=Email)
async def remind(job: RunningJob[Email]) -> None: ...


@app.schedule("@daily", data=Order(5))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
@app.worker("wrong", data=Email)
async def is_scheduled_with_another_type(job: RunningJob[Email]) -> None: ...


@app.worker("untyped")
async def untyped(job: RunningJob) -> None:
    assert_type(job.data, Any)


@app.worker("wrong", data=Email)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
async def takes_another_type(job: RunningJob[Order]) -> None: ...


@app.worker("wrong", data=Email)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
def is_not_async(job: RunningJob[Email]) -> None: ...


app.worker("wrong", colour=5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
app.worker("wrong", policy="fast")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]


# -- sending


async def send(boss: Boss, connection: "psycopg.Connection[Any]") -> None:
    assert_type(send_email, Task[Email])
    assert_type(send_email.queue, str)
    assert_type(await send_email.send(Email("ann"), priority=5), UUID | None)
    await send_email.send({"to": "ann"})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await send_email.send(Email("ann"), colour=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

    numbers: list[int] = [1]
    texts: Mapping[str, Sequence[str]] = {"a": ["b"]}
    await boss.send("q", numbers)
    await boss.send("q", {"numbers": numbers, "texts": texts}, conn=connection)
    limits: Options = {"limit": 5}
    await boss.send("q", limits)
    await boss.send("q", {"options": limits, "list": [limits]})
    await boss.send("q", {"order": Order(5)})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    await boss.send("q", Email("ann"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await boss.send("q", object())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await boss.send("q", None, priorty=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    options: SendOptions = {"priority": 5, "start_after": 60}
    await boss.send("q", None, **options)

    assert_type(await boss.insert("q", [{"data": 1}]), int)
    assert_type(await boss.insert("q", [{"data": 1}], return_ids=True), list[UUID])

    queue: QueueOptions = {"policy": "stately", "retry_limit": 5}
    await boss.create_queue("q", **queue)
    await boss.create_queue("q", policy=trioboss.Policy.SHORT)
    await boss.create_queue("q", policy="fast")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# -- reading and waiting


async def read(boss: Boss) -> None:
    sent = await boss.send("q")
    assert_type(await boss.wait_for("q", sent), Job)
    async with boss.follow("q", sent) as updates:
        async for update in updates:
            assert_type(update, JobUpdate)
    await boss.find_jobs("q", state="failed", newest=True, limit=5)
    await boss.find_jobs("q", colour=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    async with boss.events(JobFailed) as failures:
        async for failure in failures:
            assert_type(failure, JobFailed)
            assert_type(failure.exception, BaseException | None)
    async with boss.events(JobFailed, JobCompleted) as ends:
        async for end in ends:
            assert_type(end, JobFailed | JobCompleted)
    async with boss.events(JobFailed, JobCompleted, LateError) as three:
        async for each in three:
            assert_type(each, JobFailed | JobCompleted | LateError)
    async with boss.events() as events:
        async for event in events:
            assert_type(event, trioboss.Event)


def listen(boss: Boss) -> None:
    def on_any(event: trioboss.Event) -> None: ...

    def on_failure(event: JobFailed) -> None: ...

    def on_end(event: JobFailed | JobCompleted) -> None: ...

    boss.listen(on_any, JobFailed, JobCompleted, LateError)
    boss.listen(on_failure, JobFailed)
    boss.listen(on_end, JobFailed, JobCompleted)
    boss.listen(on_failure, JobCompleted)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]


def read_sync(boss: SyncBoss) -> None:
    assert_type(boss.send("q", {"a": [1]}), UUID | None)
    assert_type(boss.fetch("q"), list[Job])


# -- working


async def work(boss: Boss) -> None:
    async def handle(job: RunningJob[Email]) -> str:
        return job.data.to

    handler: Handler[Email] = handle
    worker = await boss.work("q", handler, data=Email, concurrency=5, lifespan=lifespan)
    assert_type(worker, Worker)
    await boss.work("q", handle, data=Order)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType,reportCallIssue]
    await boss.work("q", handle, concurency=5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    boss.use(middleware)

    def handle_batch(jobs: list[ThreadJob[Email]]) -> None: ...

    async def handle_batch_in_asyncio(jobs: list[AsyncioJob[Email]]) -> None: ...

    await boss.work("q", handle_batch, data=Email, batch_size=10, thread=True)
    await boss.work("q", handle_batch_in_asyncio, data=Email, batch_size=10, asyncio=True)
    await boss.work("q", handle_batch, data=Order, batch_size=10, thread=True)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType,reportCallIssue]
    statistics: BossStatistics = boss.statistics()
    workers: tuple[WorkerStatistics, ...] = statistics.workers
    assert workers


async def send_in(boss: Boss, conn: CallerConnection) -> None:
    await boss.send("q", None, conn=conn)
