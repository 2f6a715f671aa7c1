"""A dashboard on a real server, with queues of every kind and a worker that runs, in a thread of its own."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import psycopg
import trio

import trioboss
from trioboss.dashboard import make_app
from trioboss.dashboard.serving import serve_dashboard


class CardDeclined(Exception):
    """An error of a handler."""


@attrs.define
class Site:
    """A dashboard that is served, and the database behind it."""

    url: str
    dsn: str
    boss: trioboss.SyncBoss
    finish_slow: Callable[[], None]
    """Jobs of the queue `slow` run until this is called."""

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []


def make_queues(boss: trioboss.SyncBoss) -> None:
    """Queues of every kind, with jobs in every state once a worker has run."""
    boss.create_queue("dead/letters")
    boss.create_queue("email", dead_letter="dead/letters", retry_limit=0)
    boss.create_queue("orders/paid", policy="key_strict_fifo", retry_limit=0)
    boss.create_queue("reports", policy="singleton")
    boss.create_queue("slow", heartbeat=30)
    boss.create_queue("webhooks", retry_limit=3, retry_delay=3600)
    boss.create_queue("imports")
    boss.pause("imports")
    boss.insert("email", ({"data": {"to": f"user{n}@example.org", "template": "welcome"}} for n in range(40)))
    for n in range(3):
        boss.send("email", {"to": f"broken{n}", "card": "declined"})
    for n in range(6):
        boss.send("orders/paid", {"order": n, "fail": n == 0}, singleton_key="customer 7")
        boss.send("orders/paid", {"order": n}, singleton_key=f"customer {n + 10}")
    boss.send("slow", {"file": "export.csv"})
    boss.send("webhooks", {"url": "https://example.org/hook"})
    boss.insert("imports", [{"data": {"row": n}} for n in range(25)])
    boss.send("reports", {"month": "2026-10"}, start_after=86400, singleton_key="monthly")


async def run_worker(boss: trioboss.Boss, finish: trio.Event) -> None:
    """Start workers for all queues but those that nobody takes jobs of."""

    async def email(job: Any) -> str:
        if "card" in job.data:
            raise CardDeclined(f"the card of {job.data['to']} was declined")
        return "sent"

    async def order(job: Any) -> dict[str, Any]:
        if job.data.get("fail"):
            raise ValueError("no such product: 4711")
        return {"shipped": job.data["order"]}

    async def webhook(job: Any) -> None:
        raise ConnectionError("example.org does not answer")

    async def slow(job: Any) -> None:
        await job.progress(0.4)
        await finish.wait()

    await boss.work("email", email, concurrency=4)
    await boss.work("orders/paid", order, concurrency=4)
    await boss.work("webhooks", webhook)
    await boss.work("slow", slow)
    await boss.work("reports", email)


@contextmanager
def open_site(dsn: str, **options: Any) -> Iterator[Site]:
    """Serve a dashboard, with a worker, for the length of a block."""
    ready, finish, stop = threading.Event(), trio.Event(), trio.Event()
    shared: dict[str, Any] = {}

    async def serve() -> None:
        async with trioboss.open_boss(dsn, grace=1) as boss, trio.open_nursery() as nursery:
            shared["token"] = trio.lowlevel.current_trio_token()
            await boss.schedule("reports", "0 * * * *", {"month": "now"}, key="hourly")
            await run_worker(boss, finish)
            app = make_app(dsn, **options)
            shared["url"] = await nursery.start(serve_dashboard, app, "127.0.0.1", 0)
            ready.set()
            await stop.wait()
            nursery.cancel_scope.cancel()

    with trioboss.SyncBoss(dsn) as boss:
        make_queues(boss)
        thread = threading.Thread(target=_run, args=(serve, ready, shared))
        thread.start()
        ready.wait(60)
        try:
            if "error" in shared:
                raise shared["error"]
            _wait_until_settled(boss)
            yield Site(shared["url"], dsn, boss, lambda: shared["token"].run_sync_soon(finish.set))
        finally:
            if "token" in shared:
                shared["token"].run_sync_soon(finish.set)
                shared["token"].run_sync_soon(stop.set)
            thread.join(60)


def _wait_until_settled(boss: trioboss.SyncBoss) -> None:
    """Wait until the worker has run everything that it can run."""
    deadline = time.monotonic() + 60
    while True:
        stats = boss.get_all_queue_stats()
        waiting = sum(stats[queue].ready for queue in ("email", "slow", "webhooks"))
        if not waiting and stats["orders/paid"].blocked == 5 and stats["email"].active == 0:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"the worker is not done: {stats}")
        time.sleep(0.05)


def _run(serve: Any, ready: threading.Event, shared: dict[str, Any]) -> None:
    try:
        trio.run(serve)
    except BaseException as error:
        shared["error"] = error
    finally:
        ready.set()
