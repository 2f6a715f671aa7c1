"""Serves the dashboard by hypercorn on trio, beside other tasks or by itself."""

import ipaddress
import logging
import socket
from typing import Any, cast

import trio
from hypercorn.config import Config
from hypercorn.trio import serve
from starlette.types import ASGIApp

from trioboss.errors import UsageError

__all__ = ["is_loopback", "serve_dashboard"]

_logger = logging.getLogger("trioboss.dashboard")


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to that address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


async def serve_dashboard(
    app: ASGIApp, host: str, port: int, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serve until cancelled. Reports the address once it listens; port 0 is any free one."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host.strip("[]"), port), family=family)
    except OSError as error:
        raise UsageError(f"dashboard: cannot listen on {host}:{port}: {error.strerror}") from None
    address = listening.getsockname()
    shown = f"[{address[0]}]" if ":" in address[0] else address[0]
    config = Config()
    config.bind = [f"fd://{listening.detach()}"]
    config.accesslog = None
    config.errorlog = _logger
    config.graceful_timeout = 1.0
    config.shutdown_timeout = 1.0
    async with trio.open_nursery() as nursery:
        await nursery.start(_serve, app, config)
        task_status.started(f"http://{shown}:{address[1]}/")


async def _serve(app: ASGIApp, config: Config, *, task_status: trio.TaskStatus[Any]) -> None:
    await serve(
        cast("Any", app), config, mode="asgi", shutdown_trigger=trio.sleep_forever, task_status=task_status
    )
