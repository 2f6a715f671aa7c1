"""Made-up histories with violations, and with facts that look like one and are legitimate, and what is to be found."""

from violation_builders import FIFO, SECOND, Scenario, bad, job

PREFIXED_Q = "dead letter jobs that are missing or doubled are found/q"
SERIAL = ["exclusive", "key_strict_fifo", "singleton", "stately"]

SCENARIOS = [
    Scenario(
        "two attempts of one key at once are found",
        jobs=[job("a", p, 10, 12, policy=p) for p in SERIAL]
        + [job("b", p, 11, 13, policy=p, seq=2) for p in SERIAL],
        attempts=[],
        expected=[
            *(("overlap", policy, "b", "a", True) for policy in SERIAL),
            ("waiting together", "exclusive", "b", "a", True),
        ],
    ),
    Scenario(
        "jobs that may run at once do not overlap",
        jobs=[
            job("a", "standard", 10, 12),
            job("b", "standard", 11, 13),
            job("c", "short", 10, 12, policy="short"),
            job("d", "short", 11, 13, policy="short", seq=2, created_on=10.5),
            job("e", "keys", 10, 12, policy="singleton"),
            job("f", "keys", 11, 13, policy="singleton", singleton_key="other"),
            job("g", "renewed", 10, 12, policy="exclusive"),
            job("h", "renewed", 11, 13, policy="singleton"),
            job("i", "other", 10, 12, policy="singleton"),
        ],
        attempts=[],
        expected=[],
    ),
    Scenario(
        "overlaps are found however short they and the runs are",
        jobs=[
            job("a", "q", 10, 12, policy="singleton"),
            job("b", "q", 12 - SECOND / 1000, 13, policy="singleton", seq=2),
            job("c", "short runs", 10, 10 + SECOND / 50, policy="singleton"),
            job("d", "short runs", 10 + SECOND / 100, 10 + SECOND / 40, policy="singleton", seq=2),
            job("e", "inside", 10, 12, policy="singleton"),
            job("f", "inside", 11, 11 + SECOND / 50, policy="singleton", seq=2),
            job("g", "at the same instant", 10, 12, policy="singleton"),
            job("h", "at the same instant", 12, 13, policy="singleton", seq=2),
        ],
        attempts=[],
        expected=[
            ("overlap", "inside", "f", "e", True),
            ("overlap", "q", "b", "a", True),
            ("overlap", "short runs", "d", "c", True),
        ],
    ),
    Scenario(
        "a claim of a job that is given back meanwhile may seem to overlap a little",
        jobs=[job("a", "q", 12 - SECOND / 50, 15, attempt=2), job("b", "q", 11, 15, attempt=2)],
        attempts=[
            bad("a", "q", 10, 12, "released"),
            bad(
                "b", "q", 10, 12 + SECOND / 50, "released"
            ),  # it ended after the attempt that should follow it
        ],
        expected=[("overlap", "q", "a", "a", False), ("overlap", "q", "b", "b", True)],
    ),
    Scenario(
        "attempts of one job never overlap whatever the policy",
        jobs=[job("a", "q", 11, 15, attempt=2, retry_count=1)],
        attempts=[bad("a", "q", 10, 12)],
        expected=[("overlap", "q", "a", "a", True)],
    ),
    Scenario(
        "a lease that was taken back does not overlap with the next",
        jobs=[
            job("a", "q", 20, 21, policy="singleton", attempt=3, retry_count=2, start_after=18),
            job("b", "q", 15, 16, policy="singleton", seq=2),
        ],
        attempts=[bad("a", "q", 1, 15, "lost"), bad("a", "q", 16, 18, "expired", attempt=2)],
        expected=[],
    ),
    Scenario(
        "a start out of order is found with the job that was passed",
        jobs=[
            job("a", "q", 20, 21, seq=1, **FIFO),
            job("b", "q", 15, 16, seq=2, **FIFO),
            job("c", "q", 17, 18, seq=3, **FIFO),
            job("d", "unordered", 20, 21, seq=1, **FIFO),
            job("e", "unordered", 15, 16, seq=2, **FIFO),
        ],
        attempts=[],
        expected=[("order", "q", "b", "a", True)],
    ),
    Scenario(
        "a job that was not in line yet was not passed",
        jobs=[
            job("deferred", "q", 20, 21, seq=1, start_after=17, **FIFO),
            job("b", "q", 15, 16, seq=2, **FIFO),
            job("ready before", "q", 18, 19, seq=3, **FIFO),
            job("resumed", "r", 20, 21, seq=1, start_after=19, **FIFO),
            job("e", "r", 15, 16, seq=2, **FIFO),
            job("dead letter", "s", 20, 21, seq=1, source_queue="q", **FIFO),
            job("g", "s", 15, 16, seq=2, **FIFO),
        ],
        attempts=[],
        expected=[],
    ),
    Scenario(
        "a deferred job that came due must not be passed any more",
        jobs=[
            job("deferred", "q", 30, 31, seq=1, start_after=17, **FIFO),
            job("b", "q", 15, 18, seq=2, **FIFO),
            job("c", "q", 19, 20, seq=3, **FIFO),
        ],
        attempts=[],
        expected=[("order", "q", "c", "deferred", True)],
    ),
    Scenario(
        "a retry of strict fifo must not be passed",
        jobs=[
            job("a", "q", 20, 21, seq=1, attempt=2, retry_count=1, start_after=11, **FIFO),
            job("b", "q", 15, 16, seq=2, **FIFO),
            job("c", "waiting", 20, 21, seq=1, attempt=2, retry_count=1, start_after=19, **FIFO),
            job("d", "waiting", 15, 16, seq=2, **FIFO),
            job("e", "sent later", 30, 31, seq=1, attempt=2, retry_count=1, start_after=13, **FIFO),
            job("f", "sent later", 15, 16, seq=14, **FIFO),
        ],
        attempts=[bad("a", "q", 10, 11), bad("c", "waiting", 10, 11), bad("e", "sent later", 10, 11)],
        expected=[
            ("passed a retry", "q", "b", "a", True),
            ("passed a retry", "sent later", "f", "e", True),
            ("passed a retry", "waiting", "d", "c", False),  # it may have been cancelled and resumed
        ],
    ),
    Scenario(
        "a job that no longer owns the key may be passed",
        jobs=[
            job("cancelled", "q", 20, 21, seq=1, attempt=2, start_after=19, **FIFO),
            job("b", "q", 15, 16, seq=2, **FIFO),
            job("c", "in the lake", 10, 12, seq=1, state="cancelled", retry_count=1, start_after=19, **FIFO),
            job("c", "in the lake", 20, 21, seq=1, attempt=2, retry_count=1, start_after=19, **FIFO),
            job("d", "in the lake", 15, 16, seq=2, **FIFO),
            job("e", "deleted", 15, 16, seq=2, **FIFO),
            job("f", "singleton", 20, 21, seq=1, policy="singleton", attempt=2, retry_count=1),
            job("g", "singleton", 15, 16, seq=2, policy="singleton"),
        ],
        attempts=[
            bad("cancelled", "q", 10, 11, "cancelled"),
            bad("c", "in the lake", 10, 11),
            bad("gone", "deleted", 10, 11),
            bad("gone", "deleted", 11, 14, attempt=2),
            bad("f", "singleton", 10, 11),
        ],
        expected=[],
    ),
    Scenario(
        "attempts over the limit are found and those that are free are not counted",
        jobs=[
            job("a", "q", 30, 31, attempt=3, retry_limit=1, retry_count=2),
            job("b", "q", 30, 31, attempt=5, retry_limit=1, retry_count=1, singleton_key=None),
            job("c", "q", 20, 21, attempt=2, retry_limit=1, retry_count=1, state="failed"),
        ],
        attempts=[
            bad("a", "q", 10, 11),
            bad("a", "q", 12, 13, attempt=2),
            bad("b", "q", 10, 11, "released"),
            bad("b", "q", 12, 13, "released", attempt=2),
            bad("b", "q", 14, 15, "lost", attempt=3),
            bad("b", "q", 16, 17, "cancelled", attempt=4),
            bad("c", "q", 10, 11),
            bad("c", "q", 20, 21, attempt=2),
        ],
        expected=[("over the limit", "q", "a", None, True)],
    ),
    Scenario(
        "a job that ends twice is found",
        jobs=[
            job("twice", "q", 10, 11),
            job("twice", "q", 10, 12),
            job("after completion", "q", 10, 11),
            job("after completion", "q", 14, 15, attempt=2, state="failed"),
            job("both", "q", 10, 12),
        ],
        attempts=[bad("after completion", "q", 14, 15, attempt=2), bad("both", "q", 10, 11)],
        expected=[
            ("retries left", "q", "after completion", None, False),
            ("two ends", "q", "after completion", "after completion", True),
            ("two ends", "q", "both", "both", True),
            ("two ends", "q", "twice", "twice", True),
        ],
    ),
    Scenario(
        "an end that was taken back and an id used again are no second end",
        jobs=[
            job("retried", "q", 10, 11, state="failed"),
            job("retried", "q", 20, 21, attempt=2, retry_count=1),
            job("resumed", "q", None, 5, state="cancelled", attempt=0),
            job("resumed", "q", None, 6, state="cancelled", attempt=0),
            job("resumed", "q", 20, 21),
            job("used again", "q", 10, 11),
            job("used again", "q", 40, 41, seq=30),
            job("deleted", "q", 40, 41, seq=30, attempt=2, retry_count=1),
            job("somewhere else", "q", 10, 11),
            job("somewhere else", "r", 10, 11),
        ],
        attempts=[
            bad("retried", "q", 10, 11),
            bad("deleted", "q", 10, 11),
            bad("deleted", "q", 33, 34),
        ],
        expected=[],
    ),
    Scenario(
        "an attempt that never ended is found where history is complete",
        jobs=[
            job("lost", "q", 20, 21, attempt=3, retry_count=1),
            job("old", "q", 20, 21, attempt=2, retry_count=1, created_on=-10),
            job("cancelled", "q", 10, 30, attempt=1, state="cancelled"),
            job("never ran", "q", None, 30, attempt=0, state="cancelled"),
        ],
        attempts=[bad("lost", "q", 10, 11), bad("cancelled", "q", 10, 11, "released")],
        expected=[("no end", "q", "lost", None, True)],
    ),
    Scenario(
        "a start before its time is found and of a job fetched manually it is possible",
        jobs=[
            job("early", "q", 10, 11, start_after=12),
            job("retry", "q", 10, 11, start_after=10 + SECOND / 1000, attempt=2, retry_count=1),
            job("fetched manually", "q", 10, 11, start_after=12, worker=None),
            job("before it was sent", "q", 10, 21, seq=20, created_on=20, start_after=5),
            job("backwards", "q", 10, 9),
            job("cancelled before its retry", "q", 10, 13, start_after=30, state="cancelled", retry_count=1),
            job("in time", "q", 10, 11, start_after=10),
            job("failed first", "q", 10, 9, state="failed", retry_limit=0),
            job("cancelled first", "q", None, 3, seq=4, state="cancelled", attempt=0),
        ],
        attempts=[
            bad("retry", "q", 5, 6),
            bad("cancelled before its retry", "q", 10, 11),
            bad("deleted", "q", 5, 4),
            bad("failed first", "q", 8, 9),
        ],
        expected=[
            ("early retry", "q", "retry", None, True),
            ("early start", "q", "early", None, True),
            ("early start", "q", "fetched manually", None, False),
            ("end before send", "q", "cancelled first", None, True),
            ("end before start", "q", "backwards", None, True),
            ("end before start", "q", "deleted", None, True),
            ("end before start", "q", "failed first", None, True),
            ("start before send", "q", "before it was sent", None, True),
        ],
    ),
    Scenario(
        "two jobs in a queue that has room for one are found",
        jobs=[
            job("a", "short", 20, 21, policy="short", created_on=1),
            job("b", "short", 30, 31, policy="short", created_on=10, seq=2),
            job("c", "exclusive", 20, 31, policy="exclusive", created_on=1),
            job("d", "exclusive", 40, 41, policy="exclusive", created_on=30, seq=2),
            job("e", "bulk", 20, 21, policy="short", created_on=1),
            job("f", "bulk", 30, 31, policy="short", created_on=10, seq=2),
            job("g", "bulk", 30, 31, policy="short", created_on=10, seq=3, singleton_key="other"),
            job("h", "as long as a send", 20, 31, policy="short", created_on=1),
            job("i", "as long as a send", 40, 41, policy="short", created_on=20 - SECOND / 2, seq=2),
        ],
        attempts=[],
        expected=[
            ("waiting together", "as long as a send", "i", "h", False),
            ("waiting together", "bulk", "f", "e", False),
            ("waiting together", "exclusive", "d", "c", True),
            ("waiting together", "short", "b", "a", True),
        ],
    ),
    Scenario(
        "jobs that follow each other do not wait together",
        jobs=[
            job("a", "short", 20, 31, policy="short", created_on=1),
            job("b", "short", 40, 41, policy="short", created_on=20, seq=2),
            job("c", "short", 50, 51, policy="short", created_on=30, seq=3, singleton_key="other"),
            job("d", "retried", 50, 51, policy="exclusive", attempt=2, retry_count=1, start_after=49),
            job("e", "retried", 20, 21, policy="exclusive", created_on=10, seq=2),
            job("f", "resumed", 50, 51, policy="exclusive", start_after=49),
            job("g", "resumed", 20, 21, policy="exclusive", created_on=10, seq=2),
            job("h", "standard", 20, 31),
            job("i", "standard", 25, 26, seq=2),
            job("j", "taken back", 10, 12, policy="exclusive", state="failed"),
            job("j", "taken back", 20, 21, policy="exclusive", attempt=2, retry_count=1, start_after=11),
        ],
        attempts=[bad("d", "retried", 5, 6), bad("j", "taken back", 10, 12)],
        expected=[],
    ),
    Scenario(
        "a failure with retries left is found where nobody can have asked for it",
        jobs=[
            job("lost", "q", 10, 11, state="failed"),
            job("asked for", "q", 10, 11, state="failed"),
            job("used up", "q", 10, 11, state="failed", retry_limit=0),
            job("no place", "q", 10, 11, state="failed", policy="stately"),
            job("no place for one", "q", 10, 11, state="failed", unique_until="started"),
        ],
        attempts=[
            bad("lost", "q", 10, 11, "lost"),
            bad("asked for", "q", 10, 11),
            bad("used up", "q", 10, 11, "expired"),
            bad("no place", "q", 10, 11, "lost"),
            bad("no place for one", "q", 10, 11, "expired"),
        ],
        expected=[
            ("retries left", "q", "asked for", None, False),
            ("retries left", "q", "lost", None, True),
            ("retries left", "q", "no place for one", None, False),
            ("retries left", "q", "no place", None, False),
        ],
    ),
    Scenario(
        "dead letter jobs that are missing or doubled are found",
        jobs=[
            job(name, "q", 10, 11, state="failed", retry_limit=0, dead_letter="d", singleton_key=None)
            for name in ("again", "doubled", "missing", "queued", "redriven")
        ]
        + [
            job(
                "twice",
                "q",
                10,
                11,
                state="failed",
                attempt=2,
                retry_count=1,
                retry_limit=1,
                dead_letter="d",
                singleton_key=None,
            )
        ]
        + [job("late", "q", 10, 61, state="failed", retry_limit=0, dead_letter="d", singleton_key=None)]
        + [
            job(
                id,
                "d",
                20,
                21,
                source_queue=PREFIXED_Q,
                source_id=source,
                created_on=created,
                singleton_key=None,
            )
            for id, source, created in [
                ("x1", "doubled", 11),
                ("x2", "doubled", 11),
                ("y1", "twice", 9),  # of an end that was undone
                ("y2", "twice", 11),
                ("z1", "again", 11),
                ("z2", "again", 11 + SECOND / 1000),
            ]
        ]
        + [job("new", "r", 30, 31, redriven_from="redriven", singleton_key=None)],
        attempts=[
            bad(name, "q", 10, 61 if name == "late" else 11)
            for name in ("again", "doubled", "late", "missing", "queued", "redriven")
        ]
        + [bad("twice", "q", 8, 9), bad("twice", "q", 10, 11, attempt=2)],
        expected=[
            ("no dead letter", "q", "missing", None, False),
            ("two dead letters", "d", "x1", "x2", True),
            ("two dead letters", "d", "z1", "z2", True),
        ],
    ),
]
