"""A web service: an order and the job of its receipt are written in one transaction of the request. Needs hypercorn.

SIGTERM and Ctrl-C stop it gracefully: it accepts no new requests, answers those under way, then lets running jobs end.
"""

import signal
from typing import cast

import trio
from hypercorn.config import Config
from hypercorn.trio import serve  # pyright: ignore[reportUnknownVariableType]
from hypercorn.typing import ASGIFramework
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import trioboss

TABLES = "CREATE TABLE IF NOT EXISTS orders (id bigserial, item text); CREATE TABLE IF NOT EXISTS receipts (id int)"


async def write_receipt(job: trioboss.RunningJob) -> None:
    async with job.transaction() as conn:  # its commit completes the job, too
        await conn.execute("INSERT INTO receipts VALUES (%(order)s)", job.data)


async def place_order(request: Request) -> JSONResponse:
    boss: trioboss.Boss = request.app.state.boss
    item = await request.json()
    async with boss.transaction() as conn:
        cursor = await conn.execute("INSERT INTO orders (item) VALUES (%s) RETURNING id", (item,))
        [(number,)] = await cursor.fetchall()
        await boss.send("receipts", {"order": number}, conn=conn)
    return JSONResponse({"order": number}, status_code=201)


async def wait_for_signal() -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        await anext(signals)


async def main() -> None:
    # Seconds for requests under way, then for running jobs.
    config = Config.from_mapping(bind="127.0.0.1:0", graceful_timeout=20)
    async with trioboss.open_boss(grace=30) as boss:
        async with boss.transaction() as conn:
            await conn.execute(TABLES)
        await boss.create_queue("receipts")
        await boss.work("receipts", write_receipt, concurrency=10)
        web = Starlette(routes=[Route("/orders", place_order, methods=["POST"])])
        web.state.boss = boss
        await serve(cast("ASGIFramework", web), config, shutdown_trigger=wait_for_signal)
        print("all requests are answered", flush=True)
    print("all jobs have ended")


if __name__ == "__main__":
    trio.run(main)
