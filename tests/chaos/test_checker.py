"""The checker of the chaos run accepts good histories, and finds the violation in each forged one."""

from uuid import UUID

import attrs
import pytest

from tests.chaos.harness.checker import check
from tests.chaos.harness.history import EndedAttempt, Fault, History, JobRow, QueueRules, Send, Settled, Start

QUEUES = {
    "plain": QueueRules(dead_letter="dead"),
    "dead": QueueRules(),
    "stately": QueueRules(one_at_a_time=True, may_fail_early=True),
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


def violated(history: History) -> set[str]:
    return {name for name, lines in check(history).found.items() if lines}


GOOD = {
    "a rerun after a kill": a_run(),
    "jobs of a key in order": a_key(start(A), start(B, at=3.0), ended=2.0),
    "a failure with its dead letter job": a_failure(a_dead_letter()),
    "a send refused by a policy": History(QUEUES, [send(A, answer="refused")]),
    "a send of unknown outcome without a job": History(QUEUES, [send(A, answer="unknown")]),
    "a send of unknown outcome with its job": attrs.evolve(a_run(), sends=[send(A, answer="unknown")]),
    "a lease that was lost with a crash of the server": attrs.evolve(
        a_run(), ended=[], faults=[Fault("restart", 2.0, 3.0)]
    ),
    "a late result that was refused": attrs.evolve(
        a_run(), settled=[Settled(A, 1, 6.0, False), Settled(A, 2, 5.0, True)]
    ),
}


@pytest.mark.parametrize("history", GOOD.values(), ids=GOOD)
def test_a_good_history_passes(history):
    assert check(history).is_good, check(history)


def change(history: History, **changes) -> History:
    return attrs.evolve(history, **changes)


def change_row(history: History, **changes) -> History:
    return attrs.evolve(history, rows=[attrs.evolve(history.rows[0], **changes), *history.rows[1:]])


RUN = a_run()
KEY = a_key(start(A), start(B, at=3.0), ended=2.0)
STALE = RUN.starts[0].token

FORGED = {
    "an acknowledged job is missing": ("lost", History(QUEUES, [send(A)])),
    "a job has not ended": ("lost", change_row(RUN, state="retry")),
    "a committed transaction has no job": (
        "lost",
        History(QUEUES, [send(A, answer="unknown", in_ledger=True)], ledger=[A]),
    ),
    "a failed job has no dead letter job": ("lost", a_failure()),
    "a job that was never sent": ("unexpected", change(RUN, sends=[])),
    "a job that was refused": ("unexpected", change(RUN, sends=[send(A, answer="refused")])),
    "a job that was rolled back": ("unexpected", change(RUN, sends=[send(A, answer="rolled_back")])),
    "a job without its transaction": ("unexpected", change(RUN, sends=[send(A, in_ledger=True)])),
    "a handler call for a job that does not exist": (
        "unexpected",
        change(RUN, starts=[*RUN.starts, start(B)]),
    ),
    "a dead letter job of a completed job": (
        "unexpected",
        change(RUN, rows=[*RUN.rows, attrs.evolve(a_dead_letter(), token=RUN.starts[1].token)]),
    ),
    "a dead letter job in the wrong queue": ("unexpected", a_failure(a_dead_letter(queue="single"))),
    "a job exists twice": ("duplicated", change(RUN, rows=RUN.rows * 2)),
    "two dead letter jobs of one job": ("duplicated", a_failure(a_dead_letter(), a_dead_letter(C))),
    "two attempts were accepted": (
        "duplicated",
        change(RUN, settled=[Settled(A, 1, 3.0, True), *RUN.settled]),
    ),
    "one lease was run twice": (
        "duplicated",
        change(RUN, starts=[*RUN.starts, attrs.evolve(RUN.starts[1], token="again")]),
    ),
    "a job ran after its completion": ("duplicated", change(RUN, starts=[*RUN.starts, start(A, 3, at=7.0)])),
    "the result of a lost lease was stored": ("stale_accepted", change_row(RUN, token=STALE)),
    "a result without a handler call was stored": ("stale_accepted", change_row(RUN, token=None)),
    "a lost lease ended the attempt of another": ("stale_accepted", change_row(RUN, attempt=1)),
    "an attempt number was issued twice and the older one was stored": (
        "stale_accepted",
        change_row(change(RUN, starts=[start(A, 2, at=1.0), RUN.starts[1]]), token=start(A, 2, at=1.0).token),
    ),
    "the error of a lost lease was stored": (
        "stale_accepted",
        change(a_failure(a_dead_letter()), ended=[over(start(A, 9), "failed"), *a_failure().ended[1:]]),
    ),
    "a result was accepted and is not stored": (
        "stale_accepted",
        change(RUN, settled=[Settled(A, 1, 3.0, True)]),
    ),
    "the later job started first": ("out_of_order", a_key(start(A, at=3.0), start(B, at=1.0), ended=4.0)),
    "the next job started too early": ("out_of_order", a_key(start(A), start(B, at=1.5), ended=2.0)),
    "the job before was never run": (
        "out_of_order",
        change(KEY, starts=KEY.starts[1:], rows=[attrs.evolve(KEY.rows[0], leased_on=None), KEY.rows[1]]),
    ),
    "two leases of a key at the same time": (
        "overlapped",
        History(
            QUEUES,
            [send(A, "single"), send(B, "single")],
            [start(A), start(B, at=1.5)],
            rows=[completed(start(A), "single"), completed(start(B, at=1.5), "single", at=3.0)],
        ),
    ),
    "a lease during one that was lost later": (
        "overlapped",
        History(
            QUEUES,
            [send(A, "single")],
            [start(A), start(A, 2, at=3.0)],
            rows=[completed(start(A, 2, at=3.0), "single", at=5.0)],
            ended=[over(start(A), queue="single", at=4.0)],
            faults=[Fault("kill", 1.5, 1.6, "worker")],
        ),
    ),
    "a job ran again for no reason": ("unexplained", change(RUN, ended=[])),
    "a lease was taken from a healthy worker": ("unexplained", change(RUN, faults=[])),
    "a lease was taken, and the fault was another worker's": (
        "unexplained",
        change(RUN, faults=[Fault("kill", 1.5, 1.6, "another worker")]),
    ),
    "a lease expired long before its time": (
        "unexplained",
        change(RUN, ended=[over(RUN.starts[0], "expired", at=3.5)], faults=[]),
    ),
    "more attempts than allowed": ("unexplained", a_failure(a_dead_letter(), attempts=4)),
    "fewer attempts than promised": ("unexplained", a_failure(a_dead_letter(), attempts=2)),
}


@pytest.mark.parametrize(("kind", "history"), FORGED.values(), ids=FORGED)
def test_the_violation_in_a_forged_history_is_found(kind, history):
    assert kind in violated(history)


def test_every_check_fails_for_some_history():
    assert {kind for kind, _ in FORGED.values()} == set(check(History()).found)
