"""The other waits of a job, each between a worker and a sender that are different processes.

deferred   due time → handler entered
retry      due time of the second attempt → handler entered
cron       tick → handler entered
cancel     call of `cancel` → the handler's scope is cancelled
wait_for   the handler is done → `wait_for` returns
fifo       the handler of a key's job is done → that of the next one is entered

Each side notes times by the number of the job; the harness puts them together.
"""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import trio

import trioboss
from benchmarks.programs.link import Spec, emit, follow, now, read_spec

__all__ = ["KINDS"]

QUEUE = "moments"
KINDS = ("deferred", "retry", "cron", "cancel", "wait_for", "fifo")

_GAP = 0.03  # seconds between jobs
_DELAY = 0.3  # seconds for which a job is deferred, or waits for its retry
_AT_WORK = 0.02  # seconds that a handler takes where somebody has to get ready meanwhile

OPTIONS: dict[str, dict[str, Any]] = {
    "retry": {"retry_limit": 1, "retry_delay": _DELAY},
    "fifo": {"policy": "key_strict_fifo"},
}


@attrs.define
class Notes:
    """Times by what happened and to which job."""

    server_ahead: float
    """Seconds by which the server's clock is ahead of ours."""
    times: defaultdict[str, dict[int, float]] = attrs.field(factory=lambda: defaultdict(dict))

    def note(self, what: str, job: int) -> None:
        """It happened now."""
        self.times[what][job] = now()

    def note_late(self, job: int, due: datetime) -> None:
        """It happened now, and was due then by the server's clock."""
        self.times["late"][job] = time.time() + self.server_ahead - due.timestamp()


Handler = Callable[[Any], Awaitable[None]]


def make_handler(kind: str, notes: Notes) -> Handler:
    """The handler for one kind of wait."""

    async def late(job: Any) -> None:
        notes.note_late(job.data["i"], job.start_after)

    async def retried(job: Any) -> None:
        if job.retry_count == 0:
            raise RuntimeError("as it should")
        await late(job)

    async def ticked(job: Any) -> None:
        entered = datetime.now(UTC) + timedelta(seconds=notes.server_ahead)
        notes.note_late(len(notes.times["late"]), entered.replace(microsecond=0))

    async def cancelled(job: Any) -> None:
        try:
            await trio.sleep_forever()
        finally:
            notes.note("cancelled", job.data["i"])

    async def awaited(job: Any) -> None:
        await trio.sleep(_AT_WORK)
        notes.note("done", job.data["i"])

    async def followed(job: Any) -> None:
        notes.note("entered", job.data["i"])
        await trio.sleep(_AT_WORK / 4)
        notes.note("done", job.data["i"])

    handlers = {"retry": retried, "cron": ticked, "cancel": cancelled, "wait_for": awaited, "fifo": followed}
    return handlers.get(kind, late)


async def work(spec: Spec) -> None:
    """The worker's side."""
    notes = Notes(spec["server_ahead"])
    follow(lambda command: emit("noted", times=notes.times))
    async with trioboss.open_boss(spec["dsn"], migrate=False) as boss:
        await boss.create_queue(QUEUE, **OPTIONS.get(spec["kind"], {}))
        await boss.work(QUEUE, make_handler(spec["kind"], notes), concurrency=10)
        emit("ready")
        await trio.sleep_forever()


async def send(spec: Spec) -> None:
    """The sender's side."""
    notes = Notes(spec["server_ahead"])
    async with trioboss.open_boss(spec["dsn"], migrate=False, supervise=False, schedule=False) as boss:
        await boss.wait_listening()
        if spec["kind"] == "cron":
            await boss.schedule(QUEUE, "* * * * * *", {"i": 0})
        elif spec["kind"] == "fifo":
            rows = ({"data": {"i": i}, "singleton_key": "k"} for i in range(spec["n"]))
            await boss.insert(QUEUE, rows)
        else:
            await _send_each(boss, spec, notes)
    emit("noted", times=notes.times)


async def _send_each(boss: trioboss.Boss, spec: Spec, notes: Notes) -> None:
    kind = spec["kind"]
    for i in range(spec["n"]):
        id = await boss.send(QUEUE, {"i": i}, start_after=_DELAY if kind == "deferred" else None)
        assert id is not None
        if kind == "wait_for":
            await boss.wait_for(QUEUE, id, timeout=30)
            notes.note("returned", i)
        await trio.sleep(_GAP)
        if kind == "cancel":
            notes.note("asked", i)
            await boss.cancel(QUEUE, id)


if __name__ == "__main__":
    _spec = read_spec()
    trio.run(work if _spec["role"] == "work" else send, _spec)
