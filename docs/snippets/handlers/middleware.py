from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

import trioboss


class Client:
    """Stands for an HTTP client, which is opened once and shared by all jobs."""

    async def get(self, path: str) -> str:
        if path == "/gone":
            raise LookupError(path)
        return f"200 {path}"


@asynccontextmanager
async def lifespan(boss: trioboss.Boss) -> AsyncIterator[Client]:
    print("opened")
    yield Client()
    print("closed")


app = trioboss.App(lifespan=lifespan)


@app.use
async def give_up_on_missing_pages(job: trioboss.RunningJob, call_next: trioboss.CallNext) -> object:
    try:
        return await call_next(job)
    except LookupError as error:
        raise job.dead_letter(f"there is no page {error}") from error


@app.worker("pages", retry_limit=9)
async def fetch_page(job: trioboss.RunningJob) -> str:
    client: Client = job.context
    return await client.get(job.data["path"])


async def main() -> None:
    async with trioboss.open_boss(app=app) as boss:
        for path in ("/index", "/gone"):
            job = await boss.wait_for("pages", await fetch_page.send({"path": path}))
            print(path, job.state, "at attempt", job.attempt)


trio.run(main)
