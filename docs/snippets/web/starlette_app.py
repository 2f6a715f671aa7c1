from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypedDict

import hypercorn.trio
import trio
from hypercorn.config import Config
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import trioboss

jobs = trioboss.App()


@jobs.worker("thumbnails", concurrency=10)
async def shrink(job: trioboss.RunningJob) -> dict[str, object]:
    return {"thumbnail": f"small {job.data['image']}"}


class State(TypedDict):
    boss: trioboss.Boss


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[State]:
    async with trioboss.open_boss(app=jobs) as boss:  # the workers of the app run in this process, too
        yield {"boss": boss}


async def create(request: Request) -> JSONResponse:
    boss: trioboss.Boss = request.state.boss
    image = request.path_params["image"]
    async with boss.transaction() as conn:
        await conn.execute("INSERT INTO public.upload VALUES (%s)", (image,))
        id = await shrink.send({"image": image}, conn=conn)
    job = await boss.wait_for("thumbnails", id, timeout=30)
    return JSONResponse(job.output)


web = Starlette(routes=[Route("/{image}", create, methods=["POST"])], lifespan=lifespan)

# -- end of the application


async def main() -> None:
    import httpx

    async with trioboss.open_boss() as boss, boss.transaction() as conn:
        await conn.execute("DROP TABLE IF EXISTS public.upload")
        await conn.execute("CREATE TABLE public.upload (image text)")
    config = Config()
    config.bind = ["127.0.0.1:0"]
    config.accesslog = config.errorlog = None
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        (address,) = await nursery.start(_serve, config, stop)
        async with httpx.AsyncClient(timeout=60) as client:
            response = await client.post(f"{address}/cat.png")
        print(response.status_code, response.json())
        stop.set()


async def _serve(
    config: Config, stop: trio.Event, task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED
) -> None:
    # -- serving
    await hypercorn.trio.serve(web, config, shutdown_trigger=stop.wait, task_status=task_status)
    # -- end


if __name__ == "__main__":
    trio.run(main)
