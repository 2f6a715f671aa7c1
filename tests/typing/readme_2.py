# jobs.py
from dataclasses import dataclass

import trioboss

app = trioboss.App()


@dataclass
class Email:
    to: str
    text: str


@app.worker("email", data=Email, concurrency=20, retry_limit=5, retry_backoff=True)
async def send_email(job: trioboss.RunningJob[Email]) -> None:
    print("to", job.data.to)


@app.schedule("0 3 * * *", tz="Europe/Berlin")
@app.worker("nightly")
async def nightly(job: trioboss.RunningJob) -> None:
    await send_email.send(Email("ann@example.com", "Good morning"))
