"""From plain SQL, as any language or a trigger can do it: the worker is woken just the same."""

import psycopg
import trio

import trioboss


async def main() -> None:
    done = trio.Event()
    got: list[dict[str, object]] = []

    async def handle(job: trioboss.RunningJob) -> None:
        got.append(job.data)
        if len(got) == 4:
            done.set()

    async with trioboss.open_boss() as boss:
        await boss.create_queue("from-sql")
        await boss.work("from-sql", handle)
        with psycopg.connect(boss.dsn, autocommit=True) as conn:
            conn.execute("INSERT INTO trioboss.job (name, data) VALUES ('from-sql', '{\"by\": \"INSERT\"}')")
            with conn.cursor().copy("COPY trioboss.job (name, data) FROM STDIN") as copy:
                for number in range(3):
                    copy.write_row(("from-sql", f'{{"by": "COPY", "row": {number}}}'))
        await done.wait()
    for data in got:
        print(data)


if __name__ == "__main__":
    trio.run(main)
