from dataclasses import dataclass

import trio

import trioboss

app = trioboss.App()


@dataclass
class Email:
    to: str
    text: str
    copies: int = 1  # jobs that were sent before this field existed have the default


@app.worker("mail", data=Email, concurrency=20, retry_limit=5, retry_backoff=True)
async def send_email(job: trioboss.RunningJob[Email]) -> str:
    return f"{job.data.copies} to {job.data.to}"


async def main() -> None:
    async with trioboss.open_boss(app=app) as boss:
        id = await send_email.send(Email("ann@example.com", "hello"))
        print((await boss.wait_for("mail", id)).output)

        id = await boss.send("mail", {"to": "bob@example.com", "text": "hello"})
        print((await boss.wait_for("mail", id)).output)

        id = await boss.send("mail", {"to": "cleo@example.com"})  # no text: it does not fit
        job = await boss.wait_for("mail", id)
        print(job.state, job.output["name"], "at attempt", job.attempt)


if __name__ == "__main__":
    trio.run(main)
