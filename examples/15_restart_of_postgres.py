"""A restart of Postgres interrupts no handler: a worker that is back within the lease keeps its jobs."""

import os
import signal

import trio

import trioboss
from trioboss.testing import temporary_server


async def main() -> None:
    running, finish = trio.Semaphore(0), trio.Event()

    async def write_report(job: trioboss.RunningJob) -> str:
        running.release()
        await finish.wait()  # an hour of work
        await job.progress("written")
        return f"report {job.data} of attempt {job.attempt}"

    with temporary_server() as server:
        async with (
            trioboss.open_boss(server.dsn) as boss,
            boss.events(trioboss.ListenerDown) as outages,
        ):
            await boss.create_queue("reports")
            await boss.work("reports", write_report, concurrency=3)
            ids = [await boss.send("reports", number) for number in range(3)]
            for _ in ids:
                await running.acquire()

            postmaster = (server.data / "postmaster.pid").read_text().split()[0]
            os.kill(int(postmaster), signal.SIGINT)  # a fast shutdown, as `pg_ctl restart` does it
            await anext(outages)
            print("Postgres is down; three handlers are running")
            async with boss.events(trioboss.ListenerUp) as connections:
                await trio.to_thread.run_sync(server.ensure_running)
                await anext(connections)
            print("Postgres is up again")

            finish.set()
            for id in ids:
                print((await boss.wait_for("reports", id, timeout=30)).output)


if __name__ == "__main__":
    trio.run(main)
