"""A dispatcher whose claims are slow begins the next ones after the last job that it has claimed."""

import trio
from scripted_ports import make_job

from trioboss.model.settle_and_claim import Position


async def do_nothing(job):
    return None


async def test_claims_after_a_slow_one_begin_after_its_last_job(work, open_worker):
    work.took = 0.5
    work.add(*(make_job(seq=number) for number in range(12)))
    async with open_worker(do_nothing, concurrency=2):
        await work.until(lambda: len(work.outcomes) == 12)
        await trio.sleep(3)
        began = [statement.request.after for statement in work.statements if statement.request is not None]

    # After two full claims the queue counts as saturated. The claims that find nothing more begin at the beginning.
    assert began == [None, None, *(Position(0, last) for last in (3, 5, 7, 9, 11)), None, None]
