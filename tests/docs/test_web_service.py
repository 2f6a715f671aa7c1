"""The web service of the guide works as the command of the page starts it: with its lifespan, under hypercorn."""

import os
import re
import shlex
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import httpx
import pytest
import trio

DOCS = Path(__file__).parent.parent.parent / "docs"
COMMAND = re.search(
    r"^hypercorn (.*)$", (DOCS / "guides" / "web-frameworks.md").read_text("utf-8"), re.MULTILINE
)[1]
# Without what the test chooses itself: a free port.
PROGRAM = [sys.executable, "-m", "hypercorn", *shlex.split(COMMAND), "--bind", "127.0.0.1:0"]


async def read_address(process: trio.Process) -> str:
    """The address that the server logs when it accepts connections."""
    log = b""
    async for chunk in process.stderr:
        log += chunk
        if found := re.search(rb"Running on (http://[\d.]+:\d+)", log):
            return found[1].decode()
    pytest.fail(log.decode())


async def test_the_service_with_a_lifespan_answers_and_ends_with_sigterm(dsn):
    with trio.fail_after(120):
        async with trio.open_nursery() as nursery:
            process = await nursery.start(
                partial(
                    trio.run_process,
                    PROGRAM,
                    stderr=subprocess.PIPE,
                    cwd=DOCS / "snippets" / "web",
                    env=os.environ | {"TRIOBOSS_DSN": dsn},
                )
            )
            address = await read_address(process)
            async with httpx.AsyncClient(timeout=60) as client:
                response = await client.post(f"{address}/cat.png")
            assert (response.status_code, response.json()) == (200, {"thumbnail": "small cat.png"})
            process.send_signal(signal.SIGTERM)
        assert process.returncode == 0
