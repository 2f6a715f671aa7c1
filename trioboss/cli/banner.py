"""The first lines of a worker: what runs here, and on which database."""

import logging
from collections.abc import Iterator
from typing import Any

import trio

from trioboss._version import __version__
from trioboss.api.app import App
from trioboss.api.boss import Boss
from trioboss.cli.output import format_table
from trioboss.errors import TriobossError
from trioboss.model.policy import Policy

__all__ = ["log_banner"]

_logger = logging.getLogger("trioboss.worker")

_TIMEOUT = 5.0  # seconds to wait for a server that is away: the text is worth no more


async def log_banner(boss: Boss, app: App, queues: list[str] | None, concurrency: int | None) -> None:
    """Log what the worker will do, and on which database, before it starts. Never a password.

    A server that restarts at this moment does not end the worker: its start waits for the server.
    """
    fields: dict[str, Any] | None = None
    reason = "the database did not answer"
    with trio.move_on_after(_TIMEOUT):
        try:
            fields = await _collect(boss, app, queues, concurrency)
        except TriobossError as error:
            reason = str(error)
    if fields is None:
        _logger.warning("trioboss %s starts; its settings cannot be shown now: %s", __version__, reason)
        return
    _logger.info("%s", "\n".join(_describe(fields)), extra={"fields": {"event": "WorkerStarted", **fields}})


async def _collect(boss: Boss, app: App, queues: list[str] | None, concurrency: int | None) -> dict[str, Any]:
    async with boss.transaction() as conn:
        info = conn.info
        database = {
            "host": info.host or "local socket",
            "port": info.port,
            "name": info.dbname,
            "user": info.user,
            "schema": boss.schema,
            "postgres": info.parameter_status("server_version") or "?",
        }
    # A queue that is not there yet is created as it is declared.
    declared = {queue.name: queue.options.get("policy") for queue in app.declaration().queues}
    policies = {name: Policy.parse(given or Policy.STANDARD).value for name, given in declared.items()}
    policies |= {queue.name: queue.policy.value for queue in await boss.get_queues()}
    schedules = {(schedule.queue, schedule.key) for schedule in await boss.get_schedules()}
    workers = [worker for worker in app.workers if queues is None or worker.queue in queues]
    return {
        "version": __version__,
        "database": database,
        "pooled": boss.is_pooled,
        "queues": [
            {
                "queue": worker.queue,
                "policy": policies.get(worker.queue, "pattern"),
                "concurrency": concurrency or worker.work_options.get("concurrency", 1),
            }
            for worker in workers
        ],
        "schedules": [
            {
                "queue": each.queue,
                "cron": each.cron,
                "tz": each.options.get("tz", "UTC"),
                "exists": (each.queue, each.options.get("key", "")) in schedules,
            }
            for each in app.schedules
        ],
    }


def _describe(fields: dict[str, Any]) -> Iterator[str]:
    database = fields["database"]
    yield f"trioboss {fields['version']} starts"
    yield (
        f"  database   {database['name']} on {database['host']}:{database['port']} as {database['user']}, "
        f"schema {database['schema']}, Postgres {database['postgres']}"
    )
    yield "  connected  " + (
        "through a transaction pooler: polling mode, jobs start within 2 s"
        if fields["pooled"]
        else "directly"
    )
    rows = [[each["queue"], each["policy"], f"{each['concurrency']} at once"] for each in fields["queues"]]
    rows = [["queues" if number == 0 else "", *row] for number, row in enumerate(rows)]
    yield from (f"  {line}" for line in format_table([["schedules", "", "", ""], *rows])[1:])
    for number, each in enumerate(fields["schedules"]):
        # A worker of an older version declares what the deployment of a newer one has deleted.
        missing = "" if each["exists"] else ", not in the database"
        yield f"  {'schedules' if number == 0 else '':<9}  {each['queue']}  {each['cron']} ({each['tz']}){missing}"
