from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from service import create_tables, jobs, routes
from starlette.applications import Starlette

import trioboss


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with trioboss.open_boss(app=jobs, grace=30.0) as boss:
        await create_tables(boss)
        app.state.boss = boss
        yield


web = Starlette(routes=routes, lifespan=lifespan)
