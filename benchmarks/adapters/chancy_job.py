"""The job of chancy's adapter. chancy imports functions by their path, so it cannot be in the program itself."""

from types import SimpleNamespace
from typing import Any

from chancy import job

__all__ = ["JOB", "recorder"]

recorder = SimpleNamespace(hit=None)


async def bench(*, i: int, t: float, due: float) -> None:
    """Record the entry."""
    recorder.hit({"i": i, "t": t, "due": due})


JOB: Any = job(queue="default")(bench).job
