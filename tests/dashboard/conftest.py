"""Fixtures: a dashboard without a server, for requests by httpx, and one that a browser can open."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx
import psycopg
import pytest
from browser_helpers import REQUIRED, find_browser, open_browser
from dashboard_site import Site, open_site
from database_roles import new_role
from psycopg.conninfo import make_conninfo

import trioboss
from trioboss.dashboard import make_app
from trioboss.testing import temporary_database

ORIGIN = "http://localhost"
HERE = {"Origin": ORIGIN}

Open = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@asynccontextmanager
async def _open(
    dsn: str, *, client: tuple[str, int] = ("127.0.0.1", 50000), **options: Any
) -> AsyncIterator[Any]:
    app = make_app(dsn, **options)
    transport = httpx.ASGITransport(app=app, client=client)  # type: ignore[arg-type]
    try:
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as connection:
            yield connection
    finally:
        app._close()  # type: ignore[attr-defined]


@pytest.fixture
def open_dashboard(dsn: str) -> Open:
    """Opens a dashboard on the test's database."""
    return lambda dsn=dsn, **options: _open(dsn, **options)


@pytest.fixture
async def reading(open_dashboard: Open) -> AsyncIterator[httpx.AsyncClient]:
    """A dashboard that only reads."""
    async with open_dashboard() as client:
        yield client


@pytest.fixture
async def acting(open_dashboard: Open, dsn: str) -> AsyncIterator[httpx.AsyncClient]:
    """A dashboard that can act; its requests come from its own pages."""
    async with open_dashboard(act_dsn=dsn) as client:
        client.headers.update(HERE)
        yield client


@pytest.fixture
def reader_dsn(dsn: str) -> Iterator[str]:
    """The dsn of a role that may only read."""
    with psycopg.connect(dsn, autocommit=True) as owner, new_role(owner, "reader") as role:
        yield make_conninfo(dsn, user=role)


@pytest.fixture
def filled(sync_boss: trioboss.SyncBoss) -> trioboss.SyncBoss:
    """A queue with jobs in every state."""
    sync_boss.create_queue("q", retry_limit=0)
    for state in ("completed", "failed", "cancelled", "active"):
        id = sync_boss.send("q", {"state": state})
        (job,) = sync_boss.fetch("q")
        if state == "completed":
            sync_boss.complete("q", job, {"ok": True})
        elif state == "failed":
            sync_boss.fail("q", job, ValueError("it broke"))
        elif state == "cancelled":
            sync_boss.cancel("q", id)
    sync_boss.send("q", {"state": "ready"}, priority=3)
    sync_boss.send("q", {"state": "deferred"}, start_after=3600)
    return sync_boss


# -- a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser, if the system has one.

    Of one module: while Playwright is open, no other test of this process may start an asyncio loop.
    """
    if find_browser() is None:
        message = "there is no Chromium here: the tests of the dashboard in a browser need one (apt install chromium)"
        if REQUIRED:
            pytest.fail(message)
        pytest.skip(message)
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def site(server_dsn: str) -> Iterator[Site]:
    """A dashboard that can act, with a worker beside it."""
    with temporary_database(server_dsn) as dsn, open_site(dsn, act_dsn=dsn) as site:
        yield site


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A tab. Every violation of the page's policy, and every error of a script, fails the test."""
    problems: list[str] = []
    context = browser.new_context(timezone_id="America/New_York", viewport={"width": 1200, "height": 900})
    context.set_default_timeout(20_000)
    tab = context.new_page()
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    tab.problems = problems
    yield tab
    context.close()
    assert problems == []
