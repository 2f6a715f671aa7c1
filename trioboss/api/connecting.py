"""The parameters that `open_boss` and `SyncBoss` share, and names of options that other versions of pg-boss have."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from trioboss.errors import UsageError
from trioboss.model.check import check_count, check_known, shown
from trioboss.model.described_error import Redact
from trioboss.model.queue import QueueOptions, check_defaults
from trioboss.postgres.dsn import ConnectionOptions, with_parameters
from trioboss.sql import Catalog, check_schema
from trioboss.store import Context

__all__ = ["ConnectionOptions", "check_connect", "make_context", "make_dsn"]

C = TypeVar("C", bound=Callable[..., object])

# What pg-boss calls it, or called it, and what it is here.
_OTHER_NAMES = {
    "connectionString": "dsn",
    "connection_string": "dsn",
    "database": "dbname",
    "ssl": "sslmode ('require', 'verify-full'), with sslrootcert",
    "max": "pool_size",
    "db": "conn, which every method that writes takes; or connect, which opens each connection",
    "executeSql": "conn, which every method that writes takes; or connect, which opens each connection",
    "connectionTimeoutMillis": "connect_timeout, in seconds, or connect_wait",
    "noSupervisor": "supervise=False",
    "noScheduling": "schedule=False",
    "monitorStateIntervalSeconds": "monitor_interval",
    "monitorStateIntervalMinutes": "monitor_interval, also as a timedelta",
    "maintenanceIntervalSeconds": "maintenance_interval",
    "maintenanceIntervalMinutes": "maintenance_interval, also as a timedelta",
    "archiveCompletedAfterSeconds": "not needed: jobs that have ended are archived at once",
    "archiveFailedAfterSeconds": "not needed: jobs that have ended are archived at once",
    "clockMonitorIntervalSeconds": "not needed: schedules go by the clock of the database",
    "clockMonitorIntervalMinutes": "not needed: schedules go by the clock of the database",
}


def make_dsn(call: str, dsn: str | None, options: Mapping[str, Any]) -> str | None:
    """The dsn with the connection parameters that were given beside it. Raises TypeError for other names."""
    for name in options:
        if name in _OTHER_NAMES:
            raise TypeError(f"{call}: unexpected option {name!r}: in trioboss it is {_OTHER_NAMES[name]}")
        if name in QueueOptions.__annotations__:
            raise TypeError(f"{call}: unexpected option {name!r}: it is for queues: defaults={{{name!r}: …}}")
    check_known(call, options, ConnectionOptions.__annotations__)
    return with_parameters(dsn, options)


def check_connect(connect: C | None, **arguments: object) -> C | None:
    """A function that can be called with the text of a connection, and with these arguments."""
    if connect is None:
        return None
    if not callable(connect):
        raise UsageError(f"connect: {shown(connect)} is not a function that opens a connection")
    try:
        inspect.signature(connect).bind("", **arguments)
    except ValueError:
        pass  # a function of C without a signature
    except TypeError as error:
        raise UsageError(
            f"connect: {error}: it is called with the text of a connection and {', '.join(arguments)}; "
            "take **arguments, and pass them on"
        ) from None
    return connect


def make_context(
    schema: str, max_payload: int, redact: Redact | None, defaults: QueueOptions | None
) -> Context:
    """The context of the operations, from the arguments of a boss."""
    return Context(
        Catalog(check_schema(schema)),
        max_bytes=check_count("max_payload", max_payload, low=1),
        redact=redact,
        queue_defaults=check_defaults(defaults),
    )
