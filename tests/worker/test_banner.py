"""The first lines of a worker, while the server is away."""

import os
import signal

from worker_apps import app

import trioboss
from trioboss.cli.banner import log_banner
from trioboss.testing import temporary_server


async def test_a_server_that_is_away_does_not_end_a_worker_that_is_about_to_describe_itself(caplog):
    with temporary_server() as server:
        async with trioboss.open_boss(server.dsn, grace=0) as boss:
            postmaster = int((server.data / "postmaster.pid").read_text().split()[0])
            os.kill(postmaster, signal.SIGQUIT)

            await log_banner(boss, app, None, None)

    assert "its settings cannot be shown now" in caplog.text
