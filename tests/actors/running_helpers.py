"""Runs a handler on some jobs and returns what was settled."""

import json

import trio
from scripted_ports import ids, outputs

from trioboss.model.settle_and_claim import Failure


async def run_all(work, open_worker, handler, count=1, **options):
    """Run a handler on some jobs, without retries, and another job beside it; return the accepted outcomes."""
    work.retries = False
    jobs = work.send(count)
    work.send(1, queue="other")
    seen = []

    async def dispatch(job):
        if (job[0] if isinstance(job, list) else job).queue == "other":
            seen.append(job)
            return None
        return await handler(job)

    with trio.fail_after(1000):
        async with open_worker(dispatch, queue="*", queues=("q", "other"), **{"concurrency": 2, **options}):
            await work.until(lambda: len(work.outcomes) == count + 1)
    assert len(seen) == 1
    assert not work.active
    return [outputs(work)[id] for id in ids(jobs)]


def error_of(outcome):
    assert isinstance(outcome, Failure)
    assert outcome.error is not None
    return json.loads(outcome.error)
