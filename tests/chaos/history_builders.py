"""Builders of small histories of chaos runs: one fact each, and changes of it."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import attrs

from tests.chaos.harness.history import (
    Change,
    EndedAttempt,
    Exit,
    Fault,
    History,
    JobRow,
    Memory,
    QueueRules,
    Send,
    Settled,
    Start,
    Tick,
)

QUEUES = {
    "plain": QueueRules(dead_letter="dead"),
    "dead": QueueRules(),
    "stately": QueueRules(one_at_a_time=True, one_created=True, one_retry=True),
    "exclusive": QueueRules(one_at_a_time=True, one_alive=True),
    "short": QueueRules(one_created=True),
    "sorted": QueueRules(by_priority=True),
    "single": QueueRules(one_at_a_time=True),
    "fifo": QueueRules(one_at_a_time=True, in_order=True),
}
A, B, C, COPY = (UUID(int=number) for number in range(1, 5))


def send(id: UUID, queue: str = "plain", key: str | None = None, answer: str = "ok", **more) -> Send:
    return Send(id, queue, key, 0.0, answer, **more)


def start(id: UUID, attempt: int = 1, at: float = 1.0, ended: float | None = 2.0) -> Start:
    return Start(id, attempt, at, f"{id.int}/{attempt}/{at}", "worker", at + 0.01, ended)


def completed(by: Start, queue: str = "plain", key: str | None = None, at: float = 2.0) -> JobRow:
    return JobRow(by.id, queue, key, "completed", by.attempt, by.leased_on, at, by.token, 2, 10.0)


def over(by: Start, outcome: str = "lost", queue: str = "plain", key: str | None = None, at: float = 2.0):
    token = by.token if outcome == "failed" else None
    return EndedAttempt(by.id, queue, key, by.attempt, by.leased_on, at, outcome, token, by.process)


def a_run() -> History:
    """One job that was completed at its second attempt, after its worker was killed."""
    first, second = start(A, ended=None), start(A, 2, at=4.0, ended=5.0)
    return History(
        QUEUES,
        [send(A)],
        [first, second],
        [Settled(A, 2, 5.0, True)],
        [completed(second, at=5.0)],
        [over(first, at=3.5)],
        [Fault("kill", 1.5, 1.6, "worker")],
    )


def a_key(first: Start, second: Start, *, ended: float) -> History:
    """Two jobs of one key, A committed before B."""
    rows = [completed(first, "fifo", "k", at=ended), completed(second, "fifo", "k", at=9.0)]
    sends = [send(A, "fifo", "k", in_ledger=True), send(B, "fifo", "k", in_ledger=True)]
    return History(QUEUES, sends, [first, second], rows=rows, ledger=[A, B])


def a_failure(*copies: JobRow, attempts: int = 3) -> History:
    """A job that used up its retries."""
    starts = [start(A, number, at=float(number), ended=number + 0.5) for number in range(1, attempts + 1)]
    last = starts[-1]
    row = JobRow(A, "plain", None, "failed", attempts, last.leased_on, last.at + 0.5, None, 2, 10.0)
    ended = [over(each, "failed", at=each.leased_on + 0.5) for each in starts]
    sends = [send(A)]
    copy_starts = [start(copy.id, at=20.0) for copy in copies]
    copies = tuple(
        attrs.evolve(copy, token=each.token) for copy, each in zip(copies, copy_starts, strict=True)
    )
    return History(QUEUES, sends, starts + copy_starts, rows=[row, *copies], ended=ended)


def a_dead_letter(id: UUID = COPY, source: UUID = A, queue: str = "dead") -> JobRow:
    return JobRow(id, queue, None, "completed", 1, 20.0, 21.0, None, 2, 10.0, source)


def two_jobs(first: JobRow, second: JobRow, *, sent: float = 1.5, queue: str = "plain", **more) -> History:
    """A was sent at 0 and completed; B was sent a little later."""
    sends = [
        send(A, queue, "k", answered=0.5, **more),
        attrs.evolve(send(B, queue, "k", answered=sent, **more), invoked=sent),
    ]
    starts = [
        Start(row.id, row.attempt, row.leased_on, row.token, "worker", row.leased_on, row.ended_on)
        for row in (first, second)
    ]
    return History(QUEUES, sends, starts, rows=[first, second])


def one_after_the_other(
    queue: str = "plain", *, leased: float = 1.0, ended: float = 2.0
) -> tuple[JobRow, JobRow]:
    """Two jobs of a key, A done before B."""
    first, second = start(A, at=leased), start(B, at=9.0)
    return completed(first, queue, "k", at=ended), completed(second, queue, "k", at=9.5)


def a_kill(*, taken_over: float, **changes) -> History:
    """A worker was killed at 100 while it ran A, and nothing else was broken."""
    first, second = start(A, at=99.5, ended=None), start(A, 2, at=taken_over, ended=taken_over + 1)
    return attrs.evolve(
        History(
            QUEUES,
            [send(A)],
            [first, second],
            rows=[completed(second, at=taken_over + 1)],
            ended=[over(first, at=104.0)],
            faults=[Fault("kill", 100.0, 100.1, "worker")],
            exits=[Exit("worker", 100.1, -9)],
        ),
        **changes,
    )


def a_cancellation(state: str = "cancelled", *changes: Change, leased: float = 1.0) -> History:
    """A was cancelled at 3, while it ran."""
    ran = start(A, at=leased)
    row = attrs.evolve(
        completed(ran, at=leased + 1), state=state, token=ran.token if state == "completed" else None
    )
    return History(QUEUES, [send(A)], [ran], rows=[row], changes=list(changes))


CANCEL = Change(A, "cancel", 2.9, 3.0, "ok")
RESUME = Change(A, "resume", 4.0, 4.1, "ok")


def a_schedule(*dues: float, after: float = 0.1) -> History:
    """The ticks of a schedule, each with its completed job, which started so many seconds after it was due."""
    ids = [UUID(int=100 + number) for number in range(len(dues))]
    starts = [start(id, at=due + after, ended=due + after + 0.5) for id, due in zip(ids, dues, strict=True)]
    ticks = [Tick(id, due) for id, due in zip(ids, dues, strict=True)]
    return History(
        QUEUES, starts=starts, rows=[completed(each, at=each.leased_on + 1.0) for each in starts], ticks=ticks
    )


def an_early_failure(
    outcome: str = "failed", *, other_leased: float = 9.0, queue: str = "stately"
) -> History:
    """A failed at its first attempt, at 2; B of the same key has failed once, too, and was leased again later."""
    first, other, again = start(A), start(B, at=0.2), start(B, 2, at=other_leased)
    row = JobRow(A, queue, "k", "failed", 1, first.leased_on, 2.0, None, 2, 10.0)
    return History(
        QUEUES,
        [send(A, queue, "k"), send(B, queue, "k")],
        [first, other, again],
        rows=[row, completed(again, queue, "k", at=other_leased + 0.5)],
        ended=[over(first, outcome, queue, "k", at=2.0), over(other, "failed", queue, "k", at=0.8)],
        faults=[Fault("kill", 1.5, 1.6, "worker")],
    )


def a_priority(leased: float, *faults: Fault) -> History:
    """A has the highest priority and was leased at some time; a hundred jobs of a lower one came after it."""
    ids = [UUID(int=1000 + number) for number in range(100)]
    sends = [send(A, "sorted", answered=1.0, priority=5), *(send(id, "sorted", answered=0.0) for id in ids)]
    starts = [start(A, at=leased), *(start(id, at=3.0 + number / 20) for number, id in enumerate(ids))]
    rows = [completed(each, "sorted", at=30.0) for each in starts]
    return History(QUEUES, sends, starts, rows=rows, faults=list(faults))


def a_refusal(
    queue: str = "plain",
    *,
    ended: float = 3.0,
    key: str | None = None,
    faults: Sequence[Fault] = (),
    **more: Any,
) -> History:
    """A was sent at 0 and has ended; B was refused at 1."""
    first = start(A, at=0.2, ended=0.3)
    sends = [send(A, queue, answered=0.1, **more), send(B, queue, key, "refused", answered=1.1, **more)]
    sends[1] = attrs.evolve(sends[1], invoked=1.0)
    return History(QUEUES, sends, [first], rows=[completed(first, queue, at=ended)], faults=list(faults))


def a_memory(*megabytes: float) -> History:
    """The memory of one worker, each size for a tenth of the run."""
    sizes = [size for size in megabytes for _ in range(10)]
    return History(QUEUES, memory=[Memory("worker", float(at), size) for at, size in enumerate(sizes)])


def an_exit(code: int, *faults: Fault) -> History:
    return History(QUEUES, faults=list(faults), exits=[Exit("worker", 5.0, code)])


def change(history: History, **changes) -> History:
    return attrs.evolve(history, **changes)


def change_row(history: History, **changes) -> History:
    return attrs.evolve(history, rows=[attrs.evolve(history.rows[0], **changes), *history.rows[1:]])


def change_send(history: History, **changes) -> History:
    return attrs.evolve(history, sends=[attrs.evolve(history.sends[0], **changes), *history.sends[1:]])


def change_last_send(history: History, **changes) -> History:
    return attrs.evolve(history, sends=[*history.sends[:-1], attrs.evolve(history.sends[-1], **changes)])
