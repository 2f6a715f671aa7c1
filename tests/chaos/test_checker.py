"""The checker of chaos is itself checked: a good history is good, and each forged one is found out."""

from uuid import UUID

import attrs
import pytest

from benchmarks.chaos.checker import judge
from benchmarks.chaos.history import Ended, Fault, History, QueueRules, Row, Send, Settled, Start

QUEUES = {
    "plain": QueueRules(dead_letter="dead"),
    "dead": QueueRules(),
    "stately": QueueRules(one_at_a_time=True, may_fail_early=True),
    "single": QueueRules(one_at_a_time=True),
    "fifo": QueueRules(one_at_a_time=True, in_order=True),
}
A, B, C, LETTER = (UUID(int=number) for number in range(1, 5))


def send(id: UUID, queue: str = "plain", key: str | None = None, answer: str = "ok", **more) -> Send:
    return Send(id, queue, key, 0.0, answer, **more)


def start(id: UUID, attempt: int = 1, at: float = 1.0, ended: float | None = 2.0) -> Start:
    return Start(id, attempt, at, f"{id.int}/{attempt}/{at}", "worker", at + 0.01, ended)


def completed(by: Start, queue: str = "plain", key: str | None = None, at: float = 2.0) -> Row:
    return Row(by.id, queue, key, "completed", by.attempt, by.leased_on, at, by.token, 2, 10.0)


def over(by: Start, outcome: str = "lost", queue: str = "plain", key: str | None = None, at: float = 2.0):
    token = by.token if outcome == "failed" else None
    return Ended(by.id, queue, key, by.attempt, by.leased_on, at, outcome, token, by.who)


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


def a_line(first: Start, second: Start, *, ended: float) -> History:
    """Two jobs of one key, A committed before B."""
    rows = [completed(first, "fifo", "k", at=ended), completed(second, "fifo", "k", at=9.0)]
    sends = [send(A, "fifo", "k", in_ledger=True), send(B, "fifo", "k", in_ledger=True)]
    return History(QUEUES, sends, [first, second], rows=rows, ledger=[A, B])


def a_failure(*letters: Row, attempts: int = 3) -> History:
    """A job that used up its retries."""
    starts = [start(A, number, at=float(number), ended=number + 0.5) for number in range(1, attempts + 1)]
    last = starts[-1]
    row = Row(A, "plain", None, "failed", attempts, last.leased_on, last.at + 0.5, None, 2, 10.0)
    ended = [over(each, "failed", at=each.leased_on + 0.5) for each in starts]
    sends = [send(A)]
    letter_starts = [start(letter.id, at=20.0) for letter in letters]
    letters = tuple(
        attrs.evolve(letter, token=each.token) for letter, each in zip(letters, letter_starts, strict=True)
    )
    return History(QUEUES, sends, starts + letter_starts, rows=[row, *letters], ended=ended)


def a_letter(id: UUID = LETTER, source: UUID = A, queue: str = "dead") -> Row:
    return Row(id, queue, None, "completed", 1, 20.0, 21.0, None, 2, 10.0, source)


def violated(history: History) -> set[str]:
    return {name for name, lines in judge(history).found.items() if lines}


GOOD = {
    "a rerun after a kill": a_run(),
    "jobs of a key in order": a_line(start(A), start(B, at=3.0), ended=2.0),
    "a failure with its dead letter": a_failure(a_letter()),
    "a send refused by a policy": History(QUEUES, [send(A, answer="refused")]),
    "a send of unknown outcome that is not there": History(QUEUES, [send(A, answer="unknown")]),
    "a send of unknown outcome that is there": attrs.evolve(a_run(), sends=[send(A, answer="unknown")]),
    "a lease that a crash of the server forgot": attrs.evolve(
        a_run(), ended=[], faults=[Fault("restart", 2.0, 3.0)]
    ),
    "a late result that was refused": attrs.evolve(
        a_run(), settled=[Settled(A, 1, 6.0, False), Settled(A, 2, 5.0, True)]
    ),
}


@pytest.mark.parametrize("history", GOOD.values(), ids=GOOD)
def test_a_good_history_passes(history):
    assert judge(history).is_good, judge(history)


def change(history: History, **changes) -> History:
    return attrs.evolve(history, **changes)


def change_row(history: History, **changes) -> History:
    return attrs.evolve(history, rows=[attrs.evolve(history.rows[0], **changes), *history.rows[1:]])


RUN = a_run()
LINE = a_line(start(A), start(B, at=3.0), ended=2.0)
STALE = RUN.starts[0].token

FORGED = {
    "an acknowledged job is gone": ("lost", History(QUEUES, [send(A)])),
    "a job has not come to its end": ("lost", change_row(RUN, state="retry")),
    "a committed transaction left no job": (
        "lost",
        History(QUEUES, [send(A, answer="unknown", in_ledger=True)], ledger=[A]),
    ),
    "a failed job left no dead letter": ("lost", a_failure()),
    "a job that nobody sent": ("unexpected", change(RUN, sends=[])),
    "a job that was refused": ("unexpected", change(RUN, sends=[send(A, answer="refused")])),
    "a job that was rolled back": ("unexpected", change(RUN, sends=[send(A, answer="undone")])),
    "a job without its transaction": ("unexpected", change(RUN, sends=[send(A, in_ledger=True)])),
    "a run of a job that is not there": ("unexpected", change(RUN, starts=[*RUN.starts, start(B)])),
    "a dead letter of a job that did well": (
        "unexpected",
        change(RUN, rows=[*RUN.rows, attrs.evolve(a_letter(), token=RUN.starts[1].token)]),
    ),
    "a dead letter in a foreign queue": ("unexpected", a_failure(a_letter(queue="single"))),
    "a job is there twice": ("duplicated", change(RUN, rows=RUN.rows * 2)),
    "two dead letters of one job": ("duplicated", a_failure(a_letter(), a_letter(C))),
    "two attempts were accepted": (
        "duplicated",
        change(RUN, settled=[Settled(A, 1, 3.0, True), *RUN.settled]),
    ),
    "one lease was run twice": (
        "duplicated",
        change(RUN, starts=[*RUN.starts, attrs.evolve(RUN.starts[1], token="again")]),
    ),
    "a job ran after its completion": ("duplicated", change(RUN, starts=[*RUN.starts, start(A, 3, at=7.0)])),
    "a zombie's result was stored": ("stale_accepted", change_row(RUN, token=STALE)),
    "nobody's result was stored": ("stale_accepted", change_row(RUN, token=None)),
    "a zombie ended the attempt of another": ("stale_accepted", change_row(RUN, attempt=1)),
    "an attempt number was issued twice and the older one was stored": (
        "stale_accepted",
        change_row(change(RUN, starts=[start(A, 2, at=1.0), RUN.starts[1]]), token=start(A, 2, at=1.0).token),
    ),
    "a zombie's error was stored": (
        "stale_accepted",
        change(a_failure(a_letter()), ended=[over(start(A, 9), "failed"), *a_failure().ended[1:]]),
    ),
    "a result was accepted and is not there": (
        "stale_accepted",
        change(RUN, settled=[Settled(A, 1, 3.0, True)]),
    ),
    "the later job started first": ("out_of_order", a_line(start(A, at=3.0), start(B, at=1.0), ended=4.0)),
    "the next job started too early": ("out_of_order", a_line(start(A), start(B, at=1.5), ended=2.0)),
    "the job before was never run": (
        "out_of_order",
        change(LINE, starts=LINE.starts[1:], rows=[attrs.evolve(LINE.rows[0], leased_on=None), LINE.rows[1]]),
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
    "a run was repeated for no reason": ("unexplained", change(RUN, ended=[])),
    "a lease was taken from a healthy worker": ("unexplained", change(RUN, faults=[])),
    "a lease was taken, and another worker was hurt": (
        "unexplained",
        change(RUN, faults=[Fault("kill", 1.5, 1.6, "somebody else")]),
    ),
    "a lease expired long before its time": (
        "unexplained",
        change(RUN, ended=[over(RUN.starts[0], "expired", at=3.5)], faults=[]),
    ),
    "more attempts than allowed": ("unexplained", a_failure(a_letter(), attempts=4)),
    "fewer attempts than promised": ("unexplained", a_failure(a_letter(), attempts=2)),
}


@pytest.mark.parametrize(("kind", "history"), FORGED.values(), ids=FORGED)
def test_a_forged_history_is_found_out(kind, history):
    assert kind in violated(history)


def test_every_check_is_seen_to_fail():
    assert {kind for kind, _ in FORGED.values()} == set(judge(History()).found)
