"""From a backfill to a report: a CSV file becomes jobs, their history a lake of Parquet files, and that a page.

Needs `pip install trioboss[spark]`. In a shell it is: trioboss pipeline load|archive|audit|report.
"""

import tempfile
from pathlib import Path

import trio

import trioboss
from trioboss.pipeline import Source, archive, audit, get_session, load, report

ORDERS = 200


async def charge_all(boss: trioboss.Boss) -> None:
    left, done = {str(n) for n in range(ORDERS)}, trio.Event()

    async def charge(job: trioboss.RunningJob) -> None:
        if job.data["order"] == "13" and job.attempt == 1:
            raise ConnectionError("no answer from 10.0.0.7:443")
        left.discard(job.data["order"])
        if not left:
            done.set()

    await boss.work("charges", charge, concurrency=5)
    await done.wait()
    await boss.off_work("charges")  # returns when the last job is settled


async def main(folder: Path) -> None:
    spark, orders, lake = get_session(), folder / "orders.csv", folder / "lake"
    lines = [f"{n},customer-{n % 10},{n / 4}" for n in range(ORDERS)]
    orders.write_text("\n".join(["order,customer,amount", *lines]))

    # load and archive block, and this script has nothing else to do meanwhile.
    async with trioboss.open_boss() as boss:
        await boss.create_queue("charges", policy="key_strict_fifo", retry_limit=3)
        mapping = {"singleton_key": "customer"}
        print("loaded", load([str(orders)], "charges", boss.dsn, spark=spark, mapping=mapping).released)
        await charge_all(boss)
        archive(boss.dsn, lake, spark=spark)

    found = audit(Source(lake=lake), spark=spark)
    print("audit:", found.violations.total(), "violations in", found.jobs, "jobs")
    made = report(Source(lake=lake), folder / "report", spark=spark)
    print("error:", made.errors[0]["count"], "x", made.errors[0]["fingerprint"])
    print("page:", (folder / "report" / "report.html").name)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        trio.run(main, Path(folder))
