"""The options of the data source, read from Spark's strings and checked. A mistake names the option."""

from collections.abc import Mapping
from uuid import uuid4

import attrs

from trioboss.errors import UsageError
from trioboss.model.check import check_name
from trioboss.postgres.dsn import hide_password, parse_dsn
from trioboss.postgres.embedded import find_dsn
from trioboss.sql import check_schema

__all__ = ["ReadOptions", "Secret", "WriteOptions", "need_dsn"]

# What Spark itself adds to the options of a source or a sink.
_OF_SPARK = {"path", "checkpointlocation", "queryname", "outputmode"}


class Secret(str):
    """A dsn that can be used, but not seen: neither in a repr nor in an error."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(hide_password(str(self)))


def need_dsn(given: str | None) -> Secret:
    """The dsn that was given, or that the environment gives, or raise UsageError."""
    dsn = find_dsn(given)
    if dsn is None:
        raise UsageError("dsn: say which database, by this option or by TRIOBOSS_DSN or DATABASE_URL")
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


@attrs.frozen
class ReadOptions:
    """How to read."""

    dsn: Secret
    schema: str
    table: str
    columns: tuple[str, ...] | None
    """Only these; None: all. Spark does not tell a Python source which columns a query needs."""
    partitions: int
    chunk_rows: int
    concurrency: int
    """How many statements of all readers of this database run at a time."""
    timeout: float
    """Seconds that a statement may take."""
    max_rows: int | None
    """About how many rows a micro-batch of a stream has at most."""
    start: str
    """Where a stream without a checkpoint begins: earliest, latest, or the number of a transaction."""
    first_xid: int | None
    """Only rows of transactions from this one on, and before ``end_xid``."""
    end_xid: int | None

    NAMES = (
        "dsn", "schema", "table", "columns", "numPartitions", "chunkRows", "concurrency", "statementTimeout",
        "maxRowsPerBatch", "startingXid", "fromXid", "toXid",
    )  # fmt: skip

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "ReadOptions":
        """Read the options, or raise UsageError."""
        _refuse_unknown(given, cls.NAMES)
        columns = given.get("columns")
        max_rows = _number(given, "maxRowsPerBatch", None, 1)
        start = str(given.get("startingXid", "earliest")).lower()
        if start not in ("earliest", "latest") and not start.isdigit():
            raise UsageError(f"startingXid: {start!r} is none of earliest, latest, or a number")
        return cls(
            dsn=need_dsn(given.get("dsn")),
            schema=check_schema(given.get("schema", "trioboss")),
            table=given.get("table", "archive"),
            columns=tuple(filter(None, (c.strip() for c in columns.split(",")))) if columns else None,
            partitions=_count(given, "numPartitions", 8),
            chunk_rows=_count(given, "chunkRows", 20_000),
            concurrency=_count(given, "concurrency", 4),
            timeout=_number(given, "statementTimeout", 5.0, 0.01) or 5.0,
            max_rows=None if max_rows is None else int(max_rows),
            start=start,
            first_xid=_xid(given, "fromXid"),
            end_xid=_xid(given, "toXid"),
        )


def _xid(given: Mapping[str, str], name: str) -> int | None:
    number = _number(given, name, None, 0)
    return None if number is None else int(given[name])


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
            raise UsageError("queue: say which queue gets the jobs")
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
