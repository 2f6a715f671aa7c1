from dataclasses import dataclass

import trio

import trioboss

app = trioboss.App()


@dataclass
class Welcome:
    user_id: int
    language: str = "en"


@app.worker("welcome", data=Welcome, concurrency=10, retry_limit=3, retry_backoff=True, expire_in=60)
async def send_welcome(job: trioboss.RunningJob[Welcome]) -> str:
    return f"welcome {job.data.user_id} ({job.data.language})"


@app.schedule("30 2 * * *", tz="Europe/Berlin")
@app.worker("clean-up", thread=True)  # a plain function that blocks runs in a thread
def clean_up(job: trioboss.ThreadJob) -> None:
    print("cleaning up")


async def main() -> None:
    async with trioboss.open_boss(app=app) as boss:
        id = await send_welcome.send(Welcome(7))  # send_welcome.delay(7)
        job = await boss.wait_for(
            "welcome", id
        )  # result.get(), except that it does not raise the error of the job
        print(job.state, job.output)
        await send_welcome.send(Welcome(8), start_after=3600)  # apply_async(countdown=3600)


if __name__ == "__main__":
    trio.run(main)
