import logging
import sys

import trio

import trioboss


async def greet(job: trioboss.RunningJob) -> None:
    logging.getLogger("greetings").warning("hello")


async def main() -> None:
    # begin filter
    handler = logging.StreamHandler(sys.stdout)
    handler.addFilter(trioboss.JobLogFilter())  # adds queue, job_id, attempt and worker
    handler.setFormatter(logging.Formatter("%(queue)s attempt %(attempt)s: %(message)s"))
    logging.getLogger("greetings").addHandler(handler)
    # end filter
    async with trioboss.open_boss() as boss:
        await boss.create_queue("greetings")
        await boss.work("greetings", greet)
        await boss.wait_for("greetings", await boss.send("greetings"))


trio.run(main)
