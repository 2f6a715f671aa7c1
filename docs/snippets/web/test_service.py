import os
import signal

import httpx
import pytest
import service
import trio


async def test_a_request_and_its_job_are_one_commit_and_sigterm_ends_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BIND", "127.0.0.1:0")
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            (address,) = await nursery.start(service.main)
            async with httpx.AsyncClient(timeout=60) as client:
                response = await client.post(f"{address}/cat.png")
            assert (response.status_code, response.json()) == (200, {"thumbnail": "small cat.png"})
            os.kill(os.getpid(), signal.SIGTERM)
        # The nursery has ended: so have the server and the boss.
