import trio

import trioboss


async def index_all(jobs: list[trioboss.RunningJob]) -> None:
    errors = {job.id: ValueError("empty") for job in jobs if not job.data}
    if errors:
        raise trioboss.BatchFailed(errors)  # these fail, the others complete


async def main() -> None:
    async with trioboss.open_boss() as boss:
        await boss.create_queue("documents", retry_limit=0)
        texts = [{"data": text} for text in ("one", "", "three")]
        ids = await boss.insert("documents", texts, return_ids=True)
        await boss.work("documents", index_all, batch_size=100)
        for id in ids:
            job = await boss.wait_for("documents", id)
            print(repr(job.data), job.state)


trio.run(main)
