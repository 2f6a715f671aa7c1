import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import hypercorn.trio
import trio
from hypercorn.config import Config
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import trioboss

jobs = trioboss.App(label="uploads")


@jobs.worker("thumbnails", concurrency=10)
async def shrink(job: trioboss.RunningJob) -> dict[str, object]:
    return {"thumbnail": f"small {job.data['image']}"}


async def create(request: Request) -> JSONResponse:
    boss: trioboss.Boss = request.app.state.boss
    image = request.path_params["image"]
    async with boss.transaction() as conn:
        await conn.execute("INSERT INTO public.upload VALUES (%s)", (image,))
        id = await shrink.send({"image": image}, boss=boss, conn=conn)
    try:
        job = await boss.wait_for("thumbnails", id, timeout=30)
    except TimeoutError:
        return JSONResponse({"job": str(id)}, status_code=202)
    return JSONResponse(job.output)


routes = [Route("/{image}", create, methods=["POST"])]


async def create_tables(boss: trioboss.Boss) -> None:
    """Stands for the migrations of the service. The tables of trioboss are created by `open_boss`."""
    async with boss.transaction() as conn:
        await conn.execute("CREATE TABLE IF NOT EXISTS public.upload (image text)")


async def wait_for_signal() -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        await anext(signals)


async def main(task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED) -> None:
    config = Config()
    config.bind = [os.environ.get("BIND", "127.0.0.1:8000")]
    config.graceful_timeout = 35.0  # seconds that requests have to end; longer than the timeout of wait_for
    service = Starlette(routes=routes)
    async with trioboss.open_boss(app=jobs, grace=30.0) as boss:  # the workers run in this process, too
        await create_tables(boss)
        service.state.boss = boss
        await hypercorn.trio.serve(service, config, shutdown_trigger=wait_for_signal, task_status=task_status)
        # No request is left. At the end of this block running jobs have 30 seconds, and are then given back.


# -- end of main

# -- lifespan


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with trioboss.open_boss(app=jobs, grace=30.0) as boss:
        await create_tables(boss)
        app.state.boss = boss
        yield


web = Starlette(routes=routes, lifespan=lifespan)

# -- end of lifespan

if __name__ == "__main__":
    trio.run(main)
