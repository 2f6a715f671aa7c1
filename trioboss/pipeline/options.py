"""The options of the data source, read from Spark's strings and checked. A mistake names the option."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import uuid4

import attrs

from trioboss.errors import UsageError
from trioboss.model.check import check_name
from trioboss.pipeline.days import Days
from trioboss.postgres.dsn import hide_password, parse_dsn
from trioboss.postgres.embedded import find_dsn
from trioboss.sql import check_schema

__all__ = ["ReadOptions", "Secret", "WriteOptions", "need_dsn"]

# Spark itself adds these to the options of a source or a sink.
_OF_SPARK = {"path", "checkpointlocation", "queryname", "outputmode"}
_SNAPSHOT = re.compile(r"\d+:\d+:(\d+(,\d+)*)?")


class Secret(str):
    """A dsn that can be used, but not seen: neither in a repr nor in an error."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(hide_password(str(self)))


def need_dsn(given: str | None) -> Secret:
    """The dsn that was given, or that the environment gives, or raise UsageError."""
    dsn = find_dsn(given)
    if dsn is None:
        raise UsageError("dsn: name the database, by this option or by TRIOBOSS_DSN or DATABASE_URL")
    parse_dsn(dsn)
    return Secret(dsn)


def _number(given: Mapping[str, str], name: str, default: float | None, low: float) -> float | None:
    text = given.get(name)
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not low <= number < 1e15:
        raise UsageError(f"{name}: {text!r} is not a number from {low:g} on")
    return number


def _count(given: Mapping[str, str], name: str, default: int) -> int:
    return int(_number(given, name, default, 1) or default)


def _choice(given: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    value = str(given.get(name, choices[0])).lower()
    if value not in choices:
        raise UsageError(f"{name}: {value!r} is none of {', '.join(choices)}")
    return value


def _refuse_unknown(given: Mapping[str, str], known: tuple[str, ...]) -> None:
    lower = {name.lower() for name in known}
    for name in given:
        if name.lower() not in lower | _OF_SPARK:
            raise UsageError(f"{name}: no such option: there are {', '.join(known)}")


def _names(given: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in given.get(name, "").split(","))))


def _instant(given: Mapping[str, str], name: str) -> datetime | None:
    """An instant in ISO 8601; without a time zone it is UTC."""
    text = given.get(name)
    if text is None:
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{name}: {text!r} is not a time like 2026-03-02 or 2026-03-02T10:00Z") from None
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)


def _snapshot(given: Mapping[str, str]) -> str | None:
    text = given.get("snapshot")
    if text is not None and not _SNAPSHOT.fullmatch(text):
        raise UsageError(f"snapshot: {text!r} is not what pg_current_snapshot() returns")
    return text


@attrs.frozen
class ReadOptions:
    """How to read."""

    dsn: Secret
    schema: str
    table: str
    columns: tuple[str, ...]
    """Only these; empty: all. Spark does not tell a Python source which columns a query needs."""
    queues: tuple[str, ...]
    """Only the rows of these queues; empty: of all. The server applies this, and ``since`` and ``until``, while a
    filter of a query is applied by Spark after it has received the row."""
    since: datetime | None
    """Only the rows of history that ended at or after it, and before ``until``."""
    until: datetime | None
    snapshot: str | None
    """Read history as this snapshot of Postgres shows it; None: as it is when a query begins."""
    partitions: int
    chunk_rows: int
    """A statement reads about so many rows and, of rows that are large, about so many bytes."""
    chunk_bytes: int
    concurrency: int
    """How many statements of all readers of this database run at a time."""
    timeout: float
    """Seconds that a statement may take."""
    max_rows: int | None
    """About how many rows a micro-batch of a stream has at most."""
    start: str
    """Where a stream without a checkpoint begins: earliest, latest, or a transaction id."""
    fail_on_data_loss: bool
    """Whether a stream fails if retention has deleted rows that it has not read."""
    redact: tuple[str, ...]
    """Columns, which are then null, and fields of JSON, like data.customer.email, that the server does not send."""
    first_xid: int | None
    """Only rows of transactions from this one on, and before ``end_xid``."""
    end_xid: int | None

    NAMES = (
        "dsn", "schema", "table", "columns", "queue", "since", "until", "snapshot", "numPartitions", "chunkRows",
        "chunkBytes", "concurrency", "statementTimeout", "maxRowsPerBatch", "startingXid", "failOnDataLoss", "redact",
        "fromXid", "toXid",
    )  # fmt: skip

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "ReadOptions":
        """Read the options, or raise UsageError."""
        _refuse_unknown(given, cls.NAMES)
        max_rows = _number(given, "maxRowsPerBatch", None, 1)
        start = str(given.get("startingXid", "earliest")).lower()
        if start not in ("earliest", "latest") and not start.isdigit():
            raise UsageError(f"startingXid: {start!r} is none of earliest, latest, or a number")
        return cls(
            dsn=need_dsn(given.get("dsn")),
            schema=check_schema(given.get("schema", "trioboss")),
            table=given.get("table", "archive"),
            columns=_names(given, "columns"),
            queues=tuple(check_name("queue", name) for name in _names(given, "queue")),
            since=_instant(given, "since"),
            until=_instant(given, "until"),
            snapshot=_snapshot(given),
            partitions=_count(given, "numPartitions", 8),
            chunk_rows=_count(given, "chunkRows", 20_000),
            chunk_bytes=_count(given, "chunkBytes", 32 << 20),
            concurrency=_count(given, "concurrency", 4),
            timeout=_number(given, "statementTimeout", 5.0, 0.01) or 5.0,
            max_rows=None if max_rows is None else int(max_rows),
            start=start,
            fail_on_data_loss=_choice(given, "failOnDataLoss", ("true", "false")) == "true",
            redact=_names(given, "redact"),
            first_xid=_xid(given, "fromXid"),
            end_xid=_xid(given, "toXid"),
        )

    @property
    def days(self) -> Days:
        """The days of history that can have the wanted rows."""
        return Days(self.since, self.until)


def _xid(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is not None and not (text.isascii() and text.isdigit() and len(text) < 19):
        raise UsageError(f"{name}: {text!r} is not the number of a transaction")
    return None if text is None else int(text)


@attrs.frozen
class WriteOptions:
    """How to write."""

    dsn: Secret
    schema: str
    queue: str
    load: str
    """The same name twice is one load."""
    bad_rows: str
    """'fail': one bad row, and nothing is released. 'aside': the others are."""
    rate: float | None
    """How many of the jobs may start in a second."""
    dry_run: bool
    has_ids: bool = False
    """Whether rows bring ids of their own. Then some may be of jobs that have ended."""

    NAMES = ("dsn", "schema", "queue", "loadId", "badRows", "releaseRate", "dryRun")

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "WriteOptions":
        """Read the options, or raise UsageError."""
        _refuse_unknown(given, cls.NAMES)
        if "queue" not in given:
            raise UsageError("queue: name the queue that gets the jobs")
        load = given.get("loadId") or f"once-{uuid4()}"
        if "\0" in load or len(load) > 200:
            raise UsageError("loadId: use up to 200 characters, without NUL")
        return cls(
            dsn=need_dsn(given.get("dsn")),
            schema=check_schema(given.get("schema", "trioboss")),
            queue=check_name("queue", given["queue"]),
            load=load,
            bad_rows=_choice(given, "badRows", ("fail", "aside")),
            rate=_number(given, "releaseRate", None, 0.001),
            dry_run=_choice(given, "dryRun", ("false", "true")) == "true",
        )
