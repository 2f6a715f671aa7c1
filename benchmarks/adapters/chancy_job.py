"""The job that chancy runs. It imports functions by their path, so this one cannot be in the program itself."""

from types import SimpleNamespace
from typing import Any

from chancy import job

__all__ = ["JOB", "recorder"]

recorder = SimpleNamespace(hit=None)


async def bench(*, i: int, t: float, due: float) -> None:
    """Note the entry, and be done."""
    recorder.hit({"i": i, "t": t, "due": due})


JOB: Any = job(queue="default")(bench).job
