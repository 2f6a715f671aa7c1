"""Is there a pooler between us and the server?"""

from typing import Any

from trioboss.postgres.connection import Connection

__all__ = ["is_pooled"]


async def is_pooled(connection: Connection[Any]) -> bool:
    """A pooler hands out process ids of its own when a client connects; the server knows the real one.

    It may pool by session, which would not matter to us, but from here that looks the same.
    """
    row = await (await connection.execute("SELECT pg_backend_pid()")).fetchone()
    assert row is not None
    return bool(row[0] != connection.info.backend_pid)
