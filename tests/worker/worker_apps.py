"""The apps of the worker processes in these tests. Handlers print on standard output what happens to them."""

import logging
import os
import signal
import time

import trio

import trioboss

app = trioboss.App()


def report(what, job):
    print(what, job.queue, job.id, job.attempt, os.getpid(), flush=True)


@app.worker("short", concurrency=5)
async def short(job):
    report("began", job)
    return job.data


@app.worker("long", retry_limit=1, concurrency=5)
async def long(job):
    """Sleep for as many seconds as the data says, or for ever."""
    report("began", job)
    try:
        await trio.sleep(job.data if job.data is not None else float("inf"))
    except trio.Cancelled:
        report(job.cancelled, job)
        raise


@app.worker("stubborn")
async def stubborn(job):
    report("began", job)
    with trio.CancelScope(shield=True):
        await trio.sleep_forever()


@app.worker("poison", retry_limit=1, dead_letter="graves")
async def poison(job):
    report("began", job)
    os.kill(os.getpid(), signal.SIGKILL)


@app.worker("failing", retry_limit=0)
async def failing(job):
    raise ValueError("it went\nwrong")


@app.worker("blocking")
async def blocking(job):
    time.sleep(1.3)  # noqa: ASYNC251


nothing = trioboss.App()

declared = trioboss.App()


@declared.schedule("0 3 * * *")
@declared.worker("declared", retry_limit=4)
async def declared_handler(job):
    logging.getLogger("mine").info("inside")
    return job.data


mixed = trioboss.App()


@mixed.worker("mixed/*", concurrency=5)
async def either(job):
    await (stubborn(job) if job.data == "stubborn" else long(job))
