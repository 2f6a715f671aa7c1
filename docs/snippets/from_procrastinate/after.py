from dataclasses import dataclass

import trio

import trioboss

app = trioboss.App()


@dataclass
class Sync:
    account: str


# @app.task(queue="sync", retry=5, lock=…): a lock becomes a policy of the queue and a key of the job.
@app.worker("sync", data=Sync, policy="singleton", concurrency=10, retry_limit=5)
async def sync_account(job: trioboss.RunningJob[Sync]) -> str:
    return f"{job.data.account} is up to date"


# @app.periodic(cron="*/5 * * * *")
@app.schedule("*/5 * * * *")
@app.worker("sync-all")
async def sync_all(job: trioboss.RunningJob) -> None:
    for account in ("ann", "bob"):
        # configure(lock=account, queueing_lock=account).defer_async(account=account)
        await job.boss.send_singleton("sync", {"account": account}, singleton_key=account)


async def main() -> None:
    async with trioboss.open_boss(app=app) as boss:
        id = await sync_account.send(Sync("ann"), singleton_key="ann")
        print((await boss.wait_for("sync", id)).output)

        await boss.pause("sync")
        first = await boss.send_singleton("sync", {"account": "cleo"}, singleton_key="cleo")
        second = await boss.send_singleton("sync", {"account": "cleo"}, singleton_key="cleo")
        print("sent:", first is not None, "refused:", second is None)


if __name__ == "__main__":
    trio.run(main)
