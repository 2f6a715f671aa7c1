# -- fixtures
import logging
import os
import signal
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import service
import trio
from starlette.applications import Starlette

import trioboss
from trioboss.testing import temporary_database, temporary_server


@pytest.fixture(scope="session")
def server_dsn() -> Iterator[str]:
    with temporary_server() as server:
        yield server.dsn


@pytest.fixture
def dsn(server_dsn: str) -> Iterator[str]:
    with temporary_database(server_dsn) as dsn:
        yield dsn


@pytest.fixture
async def boss(dsn: str) -> AsyncIterator[trioboss.Boss]:
    async with trioboss.open_boss(dsn, app=service.jobs) as boss:
        await service.create_tables(boss)
        yield boss


@pytest.fixture
async def client(boss: trioboss.Boss) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application itself, without a server between them."""
    web = Starlette(routes=service.routes)
    web.state.boss = boss  # instead of main(), or of a lifespan, which ASGITransport does not run
    async with httpx.AsyncClient(transport=httpx.ASGITransport(web), base_url="http://service") as client:
        yield client


# -- requests
async def test_an_image_is_answered_with_its_thumbnail(client: httpx.AsyncClient) -> None:
    response = await client.post("/cat.png")

    assert (response.status_code, response.json()) == (200, {"thumbnail": "small cat.png"})


async def test_an_image_that_is_there_already_has_one_job(
    boss: trioboss.Boss, client: httpx.AsyncClient
) -> None:
    await client.post("/cat.png")

    response = await client.post("/cat.png")

    assert response.status_code == 409
    assert len(await boss.find_jobs("thumbnails")) == 1  # the second was rolled back


async def test_a_failure_of_the_job_is_not_shown_to_the_client(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(image: str) -> str:
        raise trioboss.DeadLetterJob("the password of the store is 1234")  # without retries

    monkeypatch.setattr(service, "make_thumbnail", fail)

    response = await client.post("/cat.png")

    assert response.status_code == 500
    assert "1234" not in response.text


# -- service
class Stopping(logging.Handler):
    """Notices that a boss waits for its running jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.event = trio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("stopping: "):
            self.event.set()


@pytest.fixture
def stopping() -> Iterator[trio.Event]:
    logger, handler = logging.getLogger("trioboss"), Stopping()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler.event
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


async def test_sigterm_lets_a_running_job_end(
    dsn: str, stopping: trio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, finish = trio.Event(), trio.Event()

    async def make_slowly(image: str) -> str:
        started.set()
        await finish.wait()
        return f"slow {image}"

    monkeypatch.setenv("TRIOBOSS_DSN", dsn)
    monkeypatch.setenv("BIND", "127.0.0.1:0")
    with trio.fail_after(60):
        async with trioboss.open_boss(dsn) as boss:
            async with trio.open_nursery() as nursery:
                (address,) = await nursery.start(service.main)
                async with httpx.AsyncClient() as client:
                    assert (await client.post(f"{address}/cat.png")).status_code == 200
                monkeypatch.setattr(service, "make_thumbnail", make_slowly)
                id = await service.shrink.send({"image": "dog.png"}, boss=boss)
                await started.wait()
                os.kill(os.getpid(), signal.SIGTERM)
                await stopping.wait()  # no request is left, and the boss waits for its jobs
                finish.set()
            # The nursery has ended: so have the server and its boss.
            job = await boss.wait_for("thumbnails", id)
    assert (job.state, job.attempt, job.output) == ("completed", 1, {"thumbnail": "slow dog.png"})
