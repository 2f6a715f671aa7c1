import os
import signal

import hypercorn.trio
import psycopg
import trio
from hypercorn.config import Config
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import trioboss

jobs = trioboss.App(label="uploads")


async def make_thumbnail(image: str) -> str:
    return f"small {image}"


@jobs.worker("thumbnails", concurrency=10)
async def shrink(job: trioboss.RunningJob) -> dict[str, object]:
    return {"thumbnail": await make_thumbnail(job.data["image"])}


async def create(request: Request) -> JSONResponse:
    boss: trioboss.Boss = request.app.state.boss
    image = request.path_params["image"]
    try:
        with trio.fail_after(5):  # without it, a boss tries for 30 seconds while no server runs
            async with boss.transaction() as conn:
                id = await shrink.send({"image": image}, boss=boss, conn=conn)
                await conn.execute("INSERT INTO public.upload VALUES (%s)", (image,))
    except psycopg.errors.UniqueViolation:  # of our own statement: the job is rolled back, too
        return JSONResponse({"error": "this image is there already"}, status_code=409)
    except (trioboss.DatabaseUnavailable, psycopg.OperationalError, trio.TooSlowError):
        return JSONResponse({"error": "the database does not answer: try again later"}, status_code=503)
    try:
        job = await boss.wait_for("thumbnails", id, timeout=30)
    except (TimeoutError, trioboss.DatabaseUnavailable):  # the job is committed, and runs later
        return JSONResponse({"job": str(id)}, status_code=202)
    if (
        job.state != "completed"
    ):  # it has failed: its output is the error with a stack, which is not for the client
        return JSONResponse({"error": "no thumbnail could be made", "job": str(id)}, status_code=500)
    return JSONResponse(job.output)


routes = [Route("/{image}", create, methods=["POST"])]


async def create_tables(boss: trioboss.Boss) -> None:
    """Stands for the migrations of the service. The tables of trioboss are created by `open_boss`."""
    async with boss.transaction() as conn:
        await conn.execute("CREATE TABLE IF NOT EXISTS public.upload (image text PRIMARY KEY)")


async def wait_for_signal() -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        await anext(signals)


async def main(task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED) -> None:
    config = Config()
    config.bind = [os.environ.get("BIND", "127.0.0.1:8000")]
    config.graceful_timeout = 40.0  # seconds that requests have to end; longer than the timeouts of `create`
    web = Starlette(routes=routes)
    async with trioboss.open_boss(app=jobs, grace=30.0) as boss:  # the workers run in this process, too
        await create_tables(boss)
        web.state.boss = boss
        await hypercorn.trio.serve(web, config, shutdown_trigger=wait_for_signal, task_status=task_status)
        # No request is left. At the end of this block running jobs have 30 seconds, and are then released.


if __name__ == "__main__":
    trio.run(main)
