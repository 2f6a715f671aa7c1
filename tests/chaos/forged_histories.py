"""Good histories of chaos runs, and forged ones, each with one violation."""

import attrs

from tests.chaos.harness.history import (
    Exit,
    Fault,
    History,
    Settled,
)
from tests.chaos.history_builders import (
    CANCEL,
    COPY,
    QUEUES,
    RESUME,
    A,
    B,
    C,
    a_cancellation,
    a_dead_letter,
    a_failure,
    a_key,
    a_kill,
    a_memory,
    a_priority,
    a_refusal,
    a_run,
    a_schedule,
    an_early_failure,
    an_exit,
    change,
    change_last_send,
    change_row,
    change_send,
    completed,
    one_after_the_other,
    over,
    send,
    start,
    two_jobs,
)

GOOD = {
    "a rerun after a kill": a_run(),
    "jobs of a key in order": a_key(start(A), start(B, at=3.0), ended=2.0),
    "a failure with its dead letter job": a_failure(a_dead_letter()),
    "a send refused by a policy": a_refusal("short"),
    "a send refused by send_once": a_refusal(method="send_once"),
    "a send refused in a slot of a throttle": a_refusal(ended=0.5, slot=5.0, method="send_throttled"),
    "a send without a key refused beside a strange row": a_refusal(
        "short", ended=0.5, faults=[Fault("strange_rows", 0.1, 0.2)]
    ),
    "a send of unknown outcome without a job": History(QUEUES, [send(A, answer="unknown")]),
    "a send of unknown outcome with its job": attrs.evolve(a_run(), sends=[send(A, answer="unknown")]),
    "a lease that was lost with a crash of the server": attrs.evolve(
        a_run(), ended=[], faults=[Fault("restart", 2.0, 3.0)]
    ),
    "two jobs of send_once one after the other": two_jobs(
        *one_after_the_other(), sent=2.5, method="send_once"
    ),
    "two jobs of send_singleton, one of them active": two_jobs(
        *one_after_the_other(), method="send_singleton"
    ),
    "two jobs of exclusive one after the other": two_jobs(
        *one_after_the_other("exclusive"), sent=2.5, queue="exclusive"
    ),
    "two jobs of short, one of them active": two_jobs(*one_after_the_other("short"), queue="short"),
    "two jobs of stately, one of them leased before its send was answered": two_jobs(
        *one_after_the_other("stately", leased=0.2), sent=0.3, queue="stately"
    ),
    "two slots of a throttle": two_jobs(*one_after_the_other(), sent=3.0, slot=2.0),
    "a send that may be in either slot of a throttle": two_jobs(*one_after_the_other(), sent=1.5, slot=0.4),
    "a deferred job": change_send(a_key(start(A), start(B, at=3.0), ended=2.0), after=0.9),
    "jobs that run elsewhere in time": a_kill(taken_over=105.0),
    "jobs that run elsewhere late, because of another fault": a_kill(
        taken_over=115.0, faults=[Fault("kill", 100.0, 100.1, "worker"), Fault("lock", 103.0, 104.0)]
    ),
    "a cancelled job": a_cancellation("cancelled", CANCEL),
    "a job that was cancelled and resumed": a_cancellation("completed", CANCEL, RESUME, leased=5.0),
    "a job that may be cancelled": a_cancellation("completed", attrs.evolve(CANCEL, answer="unknown")),
    "a schedule": a_schedule(1.0, 2.0, 3.0),
    "a tick before any worker had started": a_schedule(5.0, after=20.0),
    "a retry without a place": an_early_failure(),
    "priorities": a_priority(2.0),
    "a priority after a crash": a_priority(9.0, Fault("restart", 4.0, 5.0)),
    "processes that were ended": attrs.evolve(
        an_exit(-9, Fault("kill", 4.9, 5.0, "worker"), Fault("term", 6.0, 8.0, "worker")),
        exits=[Exit("worker", 5.0, -9), Exit("worker", 8.0, 0)],
    ),
    "a worker that could not start": an_exit(75, Fault("restart", 3.0, 4.0)),
    "memory that grows at first": a_memory(50, 80, 100, 100, 105, 100, 110, 100),
    "memory of a worker that a job has killed": a_memory(50, 52, 52, 52, 9, 52, 52, 53, 53, 53, 53, 53),
    "memory that large jobs take and give back": a_memory(60, 62, 63, 63, 63, 72, 86, 64),
    "a short run": a_memory(50, 100),
    "a lease that was given back by a worker that stopped": attrs.evolve(
        a_run(),
        ended=[over(a_run().starts[0], "released", at=3.5)],
        faults=[Fault("term", 3.0, 3.6, "worker")],
    ),
    "a late result that was refused": attrs.evolve(
        a_run(), settled=[Settled(A, 1, 6.0, False), Settled(A, 2, 5.0, True)]
    ),
}


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
    "a lease was taken from a worker long after its fault": (
        "unexplained",
        change(RUN, faults=[Fault("stop", -20.0, -18.0, "worker")]),
    ),
    "a lease was taken, and the fault takes none": (
        "unexplained",
        change(RUN, faults=[Fault("snapshot", 1.5, 1.6)]),
    ),
    "a lease was given back by a worker that did not stop": (
        "unexplained",
        change(RUN, ended=[over(RUN.starts[0], "released", at=3.5)]),
    ),
    "a retry was refused, and its place was free": ("unexplained", an_early_failure(other_leased=1.2)),
    "a retry was refused to a job whose worker is gone": ("unexplained", an_early_failure("lost")),
    "a retry was refused by a policy that has a place for it": (
        "unexplained",
        an_early_failure(queue="single"),
    ),
    "two jobs of send_once at the same time": (
        "over_limit",
        two_jobs(*one_after_the_other(), method="send_once"),
    ),
    "two jobs of send_singleton at the same time": (
        "over_limit",
        two_jobs(*one_after_the_other(leased=3.0, ended=4.0), method="send_singleton"),
    ),
    "two jobs of exclusive at the same time": (
        "over_limit",
        two_jobs(*one_after_the_other("exclusive"), queue="exclusive"),
    ),
    "two jobs of short at the same time": (
        "over_limit",
        two_jobs(*one_after_the_other("short", leased=3.0, ended=4.0), queue="short"),
    ),
    "two jobs of stately at the same time": (
        "over_limit",
        two_jobs(*one_after_the_other("stately", leased=3.0, ended=4.0), queue="stately"),
    ),
    "two jobs in one slot of a throttle": ("over_limit", two_jobs(*one_after_the_other(), slot=100.0)),
    "a deferred job started before its time": (
        "early",
        change_send(a_key(start(A), start(B, at=3.0), ended=2.0), after=1.5),
    ),
    "a job of a killed worker ran late": ("late", a_kill(taken_over=115.0)),
    "a job of a killed worker never ran": (
        "late",
        change(a_kill(taken_over=115.0), starts=a_kill(taken_over=115.0).starts[:1]),
    ),
    "a worker stopped late": (
        "late",
        History(QUEUES, faults=[Fault("term", 100.0, 110.0, "worker")]),
    ),
    "a job waited although nothing was broken": (
        "late",
        History(QUEUES, [send(A, answered=0.1)], [start(A, at=15.0)], rows=[completed(start(A, at=15.0))]),
    ),
    "a deferred job waited although nothing was broken": (
        "late",
        History(
            QUEUES,
            [send(A, answered=0.1, after=3.0)],
            [start(A, at=18.0)],
            rows=[completed(start(A, at=18.0))],
        ),
    ),
    "a cancelled job was completed": ("disobeyed", a_cancellation("completed", CANCEL)),
    "a cancelled job was leased again": ("disobeyed", a_cancellation("cancelled", CANCEL, leased=5.0)),
    "a job is cancelled and nobody did that": ("disobeyed", a_cancellation()),
    "a job is cancelled although the cancellation was refused": (
        "disobeyed",
        a_cancellation("cancelled", attrs.evolve(CANCEL, answer="refused")),
    ),
    "a send was refused by a queue without a policy": ("refused", a_refusal()),
    "a send was refused, and the other job had ended": ("refused", a_refusal("exclusive", ended=0.5)),
    "a send was refused, and the other job has another key": ("refused", a_refusal("short", key="k")),
    "a send was refused by send_once, and the other job is none of it": (
        "refused",
        change_last_send(a_refusal(), method="send_once"),
    ),
    "a send was refused, and the slot of the throttle was free": (
        "refused",
        a_refusal(ended=0.5, slot=0.2, method="send_throttled"),
    ),
    "a send with a key was refused beside a strange row": (
        "refused",
        change_last_send(a_refusal("short", ended=0.5, faults=[Fault("strange_rows", 0.1, 0.2)]), key="k"),
    ),
    "a handler of a dead letter job got other data": (
        "altered",
        change(
            a_failure(a_dead_letter()), starts=[*a_failure().starts, attrs.evolve(start(COPY), checksum=7)]
        ),
    ),
    "the job of a tick started before it was due": (
        "early",
        a_schedule(5.0, after=-1.0),
    ),
    "the job of a tick started late": (
        "late",
        change(a_schedule(5.0, after=20.0), starts=[start(A), *a_schedule(5.0, after=20.0).starts]),
    ),
    "a job was resumed and is cancelled": ("disobeyed", a_cancellation("cancelled", CANCEL, RESUME)),
    "a handler got other data": ("altered", change_send(RUN, checksum=7)),
    "a tick of a schedule is missing": ("lost", a_schedule(1.0, 2.0, 4.0)),
    "a tick of a schedule has no job": (
        "lost",
        change(a_schedule(1.0, 2.0), rows=a_schedule(1.0, 2.0).rows[1:]),
    ),
    "a priority was passed by": ("out_of_order", a_priority(12.0)),
    "memory grew": ("leaked", a_memory(80, 90, 100, 110, 120, 130, 140, 150)),
    "a worker could not start and nothing was broken": (
        "gave_up",
        an_exit(75, Fault("stop", 4.0, 5.0, "another worker")),
    ),
    "a worker ended by itself": ("gave_up", an_exit(1)),
    "a worker ended by itself while another was killed": (
        "gave_up",
        an_exit(-9, Fault("kill", 4.9, 5.0, "another worker")),
    ),
    "a worker ended by itself with success": ("gave_up", an_exit(0)),
    "a worker failed when it was stopped": ("gave_up", an_exit(1, Fault("term", 4.0, 5.0, "worker"))),
    "more attempts than allowed": ("unexplained", a_failure(a_dead_letter(), attempts=4)),
    "fewer attempts than promised": ("unexplained", a_failure(a_dead_letter(), attempts=2)),
}
