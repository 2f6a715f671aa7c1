import logging
import sys

import trio

import trioboss


async def greet(job: trioboss.RunningJob) -> None:
    logging.getLogger("greetings").warning("hello")


# begin filter
class JobFormatter(logging.Formatter):
    """Begins the lines of a job with it. Outside of jobs the fields that the filter adds are empty."""

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        queue, id, attempt = (getattr(record, name, "") for name in ("queue", "job_id", "attempt"))
        return f"{queue} {id} attempt {attempt}: {line}" if queue else line


handler = logging.StreamHandler(sys.stdout)
handler.addFilter(trioboss.JobLogFilter())  # adds queue, job_id, attempt and worker
handler.setFormatter(JobFormatter("%(name)s %(message)s"))
logging.basicConfig(handlers=[handler], level=logging.WARNING)
# end filter


async def main() -> None:
    logging.getLogger("program").warning("no job is running")
    async with trioboss.open_boss() as boss:
        await boss.create_queue("greetings")
        await boss.work("greetings", greet)
        await boss.wait_for("greetings", await boss.send("greetings"))


trio.run(main)
