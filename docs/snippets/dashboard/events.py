import trio

import trioboss


async def alert(boss: trioboss.Boss, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    async with boss.events(trioboss.JobFailed, trioboss.QueueWarning) as events:
        task_status.started()
        async for event in events:
            if isinstance(event, trioboss.QueueWarning):
                print(event.queue, event.warning, event.message)
            if isinstance(event, trioboss.JobFailed):
                print(event.queue, event.state, event.error, "blocks", event.blocked_key)
                if event.state == "failed":
                    return


async def break_down(job: trioboss.RunningJob) -> None:
    raise ValueError("no such page")


async def main() -> None:
    async with trioboss.open_boss() as boss, trio.open_nursery() as nursery:
        await nursery.start(alert, boss)
        await boss.create_queue("alerts", policy="key_strict_fifo", retry_limit=1, retry_delay=0)
        await boss.work("alerts", break_down)
        await boss.send("alerts", singleton_key="ann")


trio.run(main)
