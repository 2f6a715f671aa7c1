"""The waits of a job other than send to handler, each between a worker and a sender in different processes.

deferred   due time → handler entered
retry      due time of the second attempt → handler entered
cron       tick → handler entered
cancel     call of `cancel` → the handler's scope is cancelled
wait_for   the handler has returned → `wait_for` returns
fifo       the handler of one job of a key has returned → the handler of the key's next job is entered

Each side records times by job number. The harness joins the two sides.
"""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import trio

import trioboss
from benchmarks.programs.protocol import Spec, emit, handle_commands, now, read_spec

__all__ = ["KINDS"]

QUEUE = "waits"
KINDS = ("deferred", "retry", "cron", "cancel", "wait_for", "fifo")

_GAP = 0.03  # seconds between jobs
_DELAY = 0.3  # seconds for which a job is deferred, or waits for its retry
_HANDLER_TIME = 0.02  # seconds a handler takes, so that the other side is waiting when it returns

OPTIONS: dict[str, dict[str, Any]] = {
    "retry": {"retry_limit": 1, "retry_delay": _DELAY},
    "fifo": {"policy": "key_strict_fifo"},
}


@attrs.define
class Times:
    """When things happened, by their name and the number of the job."""

    server_ahead: float
    """Seconds by which the server's clock is ahead of ours."""
    times: defaultdict[str, dict[int, float]] = attrs.field(factory=lambda: defaultdict(dict))

    def record(self, event: str, job: int) -> None:
        """Record that an event of a job happens now."""
        self.times[event][job] = now()

    def record_late(self, job: int, due: datetime) -> None:
        """Record by how many seconds a job is late that was due at a time of the server's clock."""
        self.times["late"][job] = time.time() + self.server_ahead - due.timestamp()


Handler = Callable[[Any], Awaitable[None]]


def make_handler(kind: str, times: Times) -> Handler:
    """Return the handler for one kind of wait."""

    async def late(job: Any) -> None:
        times.record_late(job.data["i"], job.start_after)

    async def retried(job: Any) -> None:
        if job.retry_count == 0:
            raise RuntimeError("the first attempt fails on purpose")
        await late(job)

    async def ticked(job: Any) -> None:
        entered = datetime.now(UTC) + timedelta(seconds=times.server_ahead)
        times.record_late(len(times.times["late"]), entered.replace(microsecond=0))

    async def cancelled(job: Any) -> None:
        try:
            await trio.sleep_forever()
        finally:
            times.record("cancelled", job.data["i"])

    async def awaited(job: Any) -> None:
        await trio.sleep(_HANDLER_TIME)
        times.record("done", job.data["i"])

    async def followed(job: Any) -> None:
        times.record("entered", job.data["i"])
        await trio.sleep(_HANDLER_TIME / 4)
        times.record("done", job.data["i"])

    handlers = {"retry": retried, "cron": ticked, "cancel": cancelled, "wait_for": awaited, "fifo": followed}
    return handlers.get(kind, late)


async def work(spec: Spec) -> None:
    """Run the worker's side."""
    times = Times(spec["server_ahead"])
    handle_commands(lambda command: emit("recorded", times=times.times))
    async with trioboss.open_boss(spec["dsn"], migrate=False) as boss:
        await boss.create_queue(QUEUE, **OPTIONS.get(spec["kind"], {}))
        await boss.work(QUEUE, make_handler(spec["kind"], times), concurrency=10)
        emit("ready")
        await trio.sleep_forever()


async def send(spec: Spec) -> None:
    """Run the sender's side."""
    times = Times(spec["server_ahead"])
    async with trioboss.open_boss(spec["dsn"], migrate=False, supervise=False, schedule=False) as boss:
        await boss.wait_listening()
        if spec["kind"] == "cron":
            await boss.schedule(QUEUE, "* * * * * *", {"i": 0})
        elif spec["kind"] == "fifo":
            rows = ({"data": {"i": i}, "singleton_key": "k"} for i in range(spec["n"]))
            await boss.insert(QUEUE, rows)
        else:
            await _send_each(boss, spec, times)
    emit("recorded", times=times.times)


async def _send_each(boss: trioboss.Boss, spec: Spec, times: Times) -> None:
    kind = spec["kind"]
    for i in range(spec["n"]):
        id = await boss.send(QUEUE, {"i": i}, start_after=_DELAY if kind == "deferred" else None)
        assert id is not None
        if kind == "wait_for":
            await boss.wait_for(QUEUE, id, timeout=30)
            times.record("returned", i)
        await trio.sleep(_GAP)
        if kind == "cancel":
            times.record("asked", i)
            await boss.cancel(QUEUE, id)


if __name__ == "__main__":
    _spec = read_spec()
    trio.run(work if _spec["role"] == "work" else send, _spec)
