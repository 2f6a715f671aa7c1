"""Mutations of a history that nothing is wrong with: each plants one violation, and says what an audit must find."""

from copy import deepcopy
from datetime import timedelta
from itertools import groupby, pairwise
from uuid import UUID

import attrs

SERIAL = ("singleton", "stately", "exclusive", "key_strict_fifo")


@attrs.define
class Copy:
    """A copy of a history, to be changed."""

    jobs: list
    attempts: list

    def _repr_pretty_(self, printer, cycle):
        printer.text("Copy(…)")  # Hypothesis warns of more than it can print

    @classmethod
    def of(cls, jobs, attempts):
        return cls(deepcopy(jobs), deepcopy(attempts))

    def completed(self, **wanted):
        """Completed jobs of which these things are true."""
        return [job for job in self.jobs if job["state"] == "completed" and _fits(job, wanted)]

    def clone(self, job, number):
        """Another job like this one."""
        other = job | {"id": str(UUID(int=number)), "seq": 10**9 + number}
        self.jobs.append(other)
        return other

    def following(self, policies):
        """Pairs of completed jobs of one key, the second the next to start after the first."""
        by_key = sorted(
            (job for job in self.completed() if job["policy"] in policies),
            key=lambda job: (job["queue"], job["singleton_key"], job["started_on"]),
        )
        for _, group in groupby(by_key, key=lambda job: (job["queue"], job["singleton_key"])):
            members = list(group)
            yield from pairwise(members)


def _fits(job, wanted):
    return all(
        job[name] in value if isinstance(value, tuple) else job[name] == value
        for name, value in wanted.items()
    )


def choose(items, number):
    """One of the items, by any number."""
    listed = list(items)
    assert listed, "the history is too small"
    return listed[number % len(listed)]


def overlap(copy, number, little):
    first, second = choose(copy.following(SERIAL), number)
    run = first["completed_on"] - first["started_on"]
    second["started_on"] = first["completed_on"] - min(little, run)
    for name in ("created_on", "start_after"):  # it was sent in time
        second[name] = min(second[name], second["started_on"])
    return "overlap", second["id"]


def swapped_starts(copy, number, little):
    """Two jobs of one key that both waited run in each other's place."""
    once = {"attempt": 1, "retry_count": 0}
    pairs = [
        (first, second)
        for first, second in copy.following(("key_strict_fifo",))
        if _fits(first, once) and _fits(second, once) and second["created_on"] < first["started_on"]
        and first["seq"] < second["seq"] and first["start_after"] == first["created_on"]
        and second["start_after"] == second["created_on"]
    ]  # fmt: skip
    first, second = choose(pairs, number)
    for name in ("started_on", "completed_on"):
        first[name], second[name] = second[name], first[name]
    return "order", second["id"]


def over_limit(copy, number, little):
    # The history has the limit of jobs that failed, and of those that override that of their queue.
    job = choose((job for job in copy.jobs if job["retry_limit"] is not None), number)
    job["retry_count"] = job["retry_limit"] + 1
    return "over the limit", job["id"]


def two_ends(copy, number, little):
    job = choose(copy.completed(), number)
    copy.jobs.append(job | {"completed_on": job["completed_on"] + little})
    return "two ends", job["id"]


def no_end(copy, number, little):
    oldest = min(attempt["ended_on"] for attempt in copy.attempts)
    retried = {job["id"] for job in copy.completed(attempt=(2, 3)) if job["created_on"] > oldest}
    attempt = choose([a for a in copy.attempts if a["job_id"] in retried], number)
    copy.attempts.remove(attempt)
    return "no end", attempt["job_id"]


def early_start(copy, number, little):
    job = choose(copy.completed(retry_count=0, attempt=1), number)
    job["start_after"] = job["started_on"] + little
    return "early start", job["id"]


def early_retry(copy, number, little):
    job = choose(copy.completed(retry_count=(1, 2)), number)
    job["start_after"] = job["started_on"] + little
    return "early retry", job["id"]


def start_before_send(copy, number, little):
    job = choose(copy.completed(attempt=1), number)
    job["created_on"] = job["started_on"] + little
    return "start before send", job["id"]


def end_before_start(copy, number, little):
    job = choose(copy.completed(), number)
    job["completed_on"] = job["started_on"] - little
    return "end before start", job["id"]


def failed_end_before_start(copy, number, little):
    job = choose([job for job in copy.jobs if job["state"] == "failed"], number)
    job["completed_on"] = job["started_on"] - little
    return "end before start", job["id"]


def end_before_send(copy, number, little):
    job = choose(copy.completed(attempt=1), number)
    never = {"state": "cancelled", "started_on": None, "attempt": 0}
    job |= never | {"completed_on": job["created_on"] - little}
    return "end before send", job["id"]


def passed_retry(copy, number, little):
    """A job runs between two attempts of another of its key."""
    records = {(attempt["job_id"], attempt["attempt"]): attempt for attempt in copy.attempts}
    pairs = [
        (records[owner["id"], 1], owner, other)
        for owner in copy.completed(policy="key_strict_fifo", attempt=2, retry_count=1)
        for other in copy.completed(
            policy="key_strict_fifo", attempt=1, retry_count=0, singleton_key=owner["singleton_key"]
        )
        if owner["seq"] < other["seq"] and (owner["id"], 1) in records
    ]  # fmt: skip
    first, owner, other = choose(pairs, number)
    between = owner["started_on"] - first["ended_on"]
    other["started_on"] = first["ended_on"] + between / 3
    other["completed_on"] = first["ended_on"] + between / 2
    for name in ("created_on", "start_after"):  # it was sent in time
        other[name] = min(other[name], other["started_on"])
    return "passed a retry", other["id"], False  # its owner may have been cancelled and resumed


def both_waiting_shortly(copy, number, little):
    """For less time than a send may take."""
    kind, id = both_waiting(copy, number, little)
    job = next(job for job in copy.jobs if job["id"] == id)
    job["created_on"] = job["start_after"] = job["started_on"] - little
    return kind, id, False


def both_waiting(copy, number, little):
    job = choose(copy.completed(policy=("short", "exclusive"), attempt=1, retry_count=0), number)
    other = copy.clone(job, number)
    second = timedelta(seconds=1)
    job["created_on"] = job["start_after"] = job["started_on"] - 4 * second - little
    other["created_on"] = other["start_after"] = job["created_on"] - second
    for name in ("started_on", "completed_on"):
        other[name] = job[name] + second
    return "waiting together", job["id"]


def two_dead_letters(copy, number, little):
    job = choose([job for job in copy.jobs if job["source_id"] is not None], number)
    other = copy.clone(job, number)
    return "two dead letters", min(job["id"], other["id"])


def dead_letter_again(copy, number, little):
    """The second one is sent a little later."""
    job = choose([job for job in copy.jobs if job["source_id"] is not None], number)
    other = copy.clone(job, number)
    for name in ("created_on", "start_after", "started_on", "completed_on"):
        other[name] += little
    return "two dead letters", min(job["id"], other["id"])


def missing_dead_letter(copy, number, little):
    failed = {job["id"] for job in copy.jobs if job["state"] == "failed"}
    id = choose(sorted({job["source_id"] for job in copy.jobs if job["source_id"] in failed}), number)
    copy.jobs = [job for job in copy.jobs if job["source_id"] != id]
    return "no dead letter", id, False  # it may have been deleted


def retries_left(copy, number, little):
    failed = [job for job in copy.jobs if job["state"] == "failed" and job["policy"] not in ("stately",)]
    job = choose(failed, number)
    job["retry_limit"] = job["retry_count"] + 1
    for attempt in copy.attempts:
        if attempt["job_id"] == job["id"]:
            attempt["outcome"] = ("lost", "expired")[number % 2]
    return "retries left", job["id"]


MUTATIONS = (
    overlap, swapped_starts, over_limit, two_ends, no_end, early_start, early_retry, start_before_send,
    end_before_start, both_waiting, two_dead_letters, retries_left, failed_end_before_start, end_before_send,
    passed_retry, both_waiting_shortly, dead_letter_again, missing_dead_letter,
)  # fmt: skip
