"""The rows that a page shows, as plain values."""

from datetime import datetime, timedelta
from typing import Any

import attrs

__all__ = ["Before", "Report", "Row"]

Row = dict[str, Any]


@attrs.frozen
class Before:
    """The period before the one of the report, for comparison."""

    length: timedelta
    queues: list[Row]


@attrs.frozen
class Report:
    """The rows of a report that fit on a page. Instants are in UTC."""

    made_on: datetime
    source: str
    first: datetime | None
    """The first and the last hour in which something happened; None: nothing did."""
    last: datetime | None
    period: timedelta
    points: list[Row]
    """The figures of each queue and period (see transforms/periods.py)."""
    queues: list[Row]
    more_queues: int
    """How many small queues are not shown."""
    errors: list[Row]
    keys: list[Row]
    slowest: list[Row]
    dead_letters: list[Row]
    before: Before | None = None
    """None: the report has no beginning, so there is no period before it."""
