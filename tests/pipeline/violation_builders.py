"""Rows of histories with violations, in minutes after midnight, and the scenarios that they belong to."""

import attrs

SECOND = 1 / 60
FIFO = {"policy": "key_strict_fifo"}


def job(id, queue, start, end, **more):
    """A job of one attempt, sent at the time of its number: seq 3 at minute 3."""
    seq = more.get("seq", 1)
    times = {"created_on": seq, "started_on": start, "completed_on": end}
    return {"id": id, "queue": queue, "singleton_key": "k", "seq": seq} | times | more


def bad(id, queue, start, end, outcome="failed", **more):
    times = {"started_on": start, "ended_on": end}
    return {"job_id": id, "queue": queue, "outcome": outcome, "singleton_key": "k"} | times | more


@attrs.frozen
class Scenario:
    """A history, and what is to be found in it: kind, queue, job, other job, certain."""

    sentence: str
    jobs: list
    attempts: list
    expected: list

    def rows(self, kind):
        """The rows, in queues that no other scenario has."""
        return [row | {"queue": self.prefix + row["queue"]} for row in getattr(self, kind)]

    @property
    def prefix(self):
        return self.sentence + "/"
