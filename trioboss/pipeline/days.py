"""Ranges of instants, and the days of history they touch. History has one table for each day in UTC."""

import re
from datetime import date, datetime

import attrs

__all__ = ["Days", "day_of"]

_SUFFIX = re.compile(r"_(\d{4})(\d\d)(\d\d)$")


def day_of(relation: str) -> date | None:
    """The day whose rows a table of history holds; None for the default partition, which may hold any."""
    match = _SUFFIX.search(relation)
    return date(*map(int, match.groups())) if match else None


@attrs.frozen
class Days:
    """A range of instants in UTC; either end may be open."""

    since: datetime | None = None
    until: datetime | None = None

    @property
    def first(self) -> date | None:
        """The first day; None: there is none."""
        return self.since.date() if self.since else None

    @property
    def last(self) -> date | None:
        """The last day; None: there is none."""
        return self.until.date() if self.until else None

    def touch(self, relation: str) -> bool:
        """Whether a table of history can have rows of the range."""
        day = day_of(relation)
        if day is None:
            return True
        return (self.first is None or self.first <= day) and (self.last is None or day <= self.last)
