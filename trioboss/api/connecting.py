"""The parameters that `open_boss` and `SyncBoss` share, and names of options that other versions of pg-boss have."""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from trioboss.errors import UsageError
from trioboss.model.check import check_count, shown
from trioboss.model.described_error import Redact
from trioboss.model.option_names import check_known, find_option
from trioboss.model.queue import QueueOptions, check_defaults
from trioboss.postgres.dsn import ConnectionOptions, with_parameters
from trioboss.sql import Catalog, check_schema
from trioboss.store import Context

__all__ = ["ConnectionOptions", "check_connect", "make_context", "make_dsn"]

C = TypeVar("C", bound=Callable[..., object])

# Names that pg-boss has, or had, for these options, and ours.
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
    "superviseIntervalSeconds": "maintenance_interval",
    "monitorIntervalSeconds": "maintenance_interval; while jobs run, leases are examined every 1.5 s",
    "monitorStateIntervalSeconds": "monitor_interval",
    "monitorStateIntervalMinutes": "monitor_interval, also as a timedelta",
    "maintenanceIntervalSeconds": "maintenance_interval for leases, prune_interval for deletions",
    "maintenanceIntervalMinutes": "maintenance_interval, also as a timedelta",
    **dict.fromkeys(
        ("archiveCompletedAfterSeconds", "archiveFailedAfterSeconds", "archiveIntervalSeconds"),
        "not needed: jobs that have ended are archived at once",
    ),
    **dict.fromkeys(
        (
            "clockMonitorIntervalSeconds",
            "clockMonitorIntervalMinutes",
            "clockMonitoringInterval",
            "clockMonitoringIntervalSeconds",
            "clockMonitoringIntervalMinutes",
        ),
        "not needed: schedules go by the clock of the database",
    ),
    **dict.fromkeys(
        ("newJobCheckInterval", "newJobCheckIntervalSeconds", "pollingIntervalSeconds"),
        "not needed: a notification wakes workers",
    ),
    **dict.fromkeys(
        ("cronMonitorIntervalSeconds", "cronWorkerIntervalSeconds"),
        "not needed: a timer fires each tick",
    ),
    **dict.fromkeys(
        (
            "useListenNotify",
            "notifyHeartbeatIntervalMs",
            "notifyHeartbeatTimeoutMs",
            "notifyKeepAliveInitialDelayMs",
        ),
        "not needed: workers are always notified, and the listener probes its connection",
    ),
    "queueCacheIntervalSeconds": "not needed: changed queues are notified",
    "bamIntervalSeconds": "not needed: migrations leave no work behind",
    "persistWarnings": "not needed: warnings are kept for a week, see get_warnings",
    "warningRetentionDays": "not needed: warnings are kept for a week, see get_warnings",
    "persistQueueStats": "not needed: samples are kept for a day, see get_queue_stats_history",
    "queueStatRetentionDays": "not needed: samples are kept for a day, see get_queue_stats_history",
    "registerInstance": "not needed: every boss with workers is registered, see `trioboss workers`",
    "instanceName": "worker_name",
    "instanceHeartbeatSeconds": "not needed: each worker holds a lock of its session; see presence_grace",
    **dict.fromkeys(
        ("reindex", "reindexIntervalSeconds"), "not there: `trioboss doctor` finds tables full of dead rows"
    ),
    "monitorVacuum": "not there: `trioboss doctor` finds what holds vacuum up",
    "warningSlowQuerySeconds": "not there: log_min_duration_statement of Postgres logs slow statements",
    "flowIntervalSeconds": "not there: no job waits for other jobs",
    "backend": "not there: the database is Postgres",
    "clock": "not there: time is that of the database",
    "__test__enableSpies": "not there: trioboss.testing.record records the events of a boss",
    "allowSchemaCaseVariant": "not needed: schemas may differ by case",
    "openTelemetry": "trioboss.otel.instrument(boss)",
    "uuid": "not needed: ids are UUIDv7",
}


def make_dsn(call: str, dsn: str | None, options: Mapping[str, Any], keywords: Collection[str]) -> str | None:
    """The dsn with the connection parameters that were given beside it. Raises TypeError for other names.

    ``keywords``: the other parameters of the call, for its errors.
    """
    for name in options:
        is_known = name in _OTHER_NAMES or find_option(name, (*ConnectionOptions.__annotations__, *keywords))
        meant = None if is_known else find_option(name, QueueOptions.__annotations__)
        if meant is not None:
            raise TypeError(
                f"{call}: unexpected option {name!r}: it is for queues: give it in defaults={{…}}, as {meant}"
            )
    check_known(call, options, ConnectionOptions.__annotations__, keywords, _OTHER_NAMES)
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
