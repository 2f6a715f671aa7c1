"""Rows of history, written in minutes after midnight. Fields that a test does not give are as for an ordinary job."""

from datetime import UTC, datetime, timedelta

from trioboss.pipeline.columns import TABLES

DAY = datetime(2026, 3, 2, tzinfo=UTC)
TIMES = {"created_on", "start_after", "started_on", "completed_on", "ended_on", "failed_on"}
JOB = {
    "id": "j",
    "queue": "q",
    "state": "completed",
    "policy": "standard",
    "created_on": 0,
    "attempt": 1,
    "retry_count": 0,
    "retry_limit": 2,
    "seq": 1,
    "worker": "w",
}
ATTEMPT = {"job_id": "j", "queue": "q", "attempt": 1, "outcome": "failed", "worker": "w"}


def at(minutes):
    """The instant so many minutes after midnight."""
    return DAY + timedelta(minutes=minutes)


def minutes(instant):
    """The same backwards, for what Spark returns."""
    return round((instant.astimezone(UTC) - DAY).total_seconds() / 60, 6)


def make_jobs(spark, *rows):
    """Ended jobs. One that is not told otherwise could start when it was created."""
    return _make(spark, "archive", [JOB | {"start_after": row.get("created_on", 0)} | row for row in rows])


def make_attempts(spark, *rows):
    """Attempts that did not end well."""
    return _make(spark, "attempt", [ATTEMPT | row for row in rows])


def _make(spark, table, rows):
    schema = TABLES[table].schema()
    values = [tuple(_value(name, row.get(name)) for name in schema.names) for row in rows]
    return spark.createDataFrame(values, schema, verifySchema=False)


def _value(name, value):
    return at(value) if name in TIMES and value is not None else value


def table(frame, *columns):
    """The rows, sorted, as tuples of these columns, with instants in minutes."""
    rows = [tuple(_plain(row[name]) for name in columns or frame.columns) for row in frame.collect()]
    return sorted(rows, key=repr)


def _plain(value):
    if isinstance(value, datetime):
        return minutes(value)
    return round(value, 6) if isinstance(value, float) else value
