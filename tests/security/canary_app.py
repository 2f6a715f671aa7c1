"""An app for a worker process whose every word is searched for secrets."""

import trioboss

app = trioboss.App()


@app.worker("good", concurrency=2)
async def good(job):
    """Give the payload back."""
    return job.data


@app.worker("bad", retry_limit=0)
async def bad(job):
    """Fail with the payload in a local variable."""
    secret = job.data
    assert secret
    raise RuntimeError("this one fails")
