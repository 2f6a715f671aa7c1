import trio

import trioboss

app = trioboss.App(label="payments")


@app.worker("payments", policy="key_strict_fifo", retry_limit=0)
async def pay(job: trioboss.RunningJob) -> None:
    raise ValueError("no such account")


# begin hook
def page(event: trioboss.JobFailed) -> None:
    if event.blocked_key is not None:
        print("page somebody:", event.queue, event.blocked_key, event.id, event.error)


def listen(boss: trioboss.Boss) -> None:
    boss.listen(page, trioboss.JobFailed)


app.on_start(listen)
# end hook


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await app.start(boss)  # as `trioboss worker` does
        id = await boss.send("payments", singleton_key="ann")
        with trio.fail_after(60):
            await boss.wait_for("payments", id)


trio.run(main)
