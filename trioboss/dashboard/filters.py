"""The filter of a list of jobs. It is the query of the page's address, so that a list can be sent to somebody."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import attrs

from trioboss.errors import UsageError
from trioboss.model.check import check_instant, check_uuid

__all__ = ["FIRST_ID", "LAST_ID", "STATES", "JobFilter"]

FIRST_ID = UUID(int=0)
LAST_ID = UUID(int=(1 << 128) - 1)

STATES = ("queued", "deferred", "waiting", "ready", "retry", "active", "completed", "failed", "cancelled")
"""What a list can be limited to: the states of jobs, and what queued ones wait for."""

_ENDED = ("completed", "cancelled")
_PREFIX = re.compile(r"[0-9a-f-]{1,36}")
_AGO = re.compile(r"(\d{1,4})(m|h|d)")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


@attrs.frozen
class JobFilter:
    """Jobs of one queue that pass everything that is given."""

    state: str | None = None
    key: str | None = None
    error: str | None = None
    """The class of the error."""
    attempt: int | None = None
    """At least so many attempts."""
    text: str | None = None
    """How the id begins."""
    since: datetime | None = None
    """Ended jobs by when they ended, the others by when they were sent."""
    until: datetime | None = None
    high: UUID = LAST_ID
    """Only older ids: where a page of the list begins."""

    @classmethod
    def parse(cls, query: Mapping[str, str], now: datetime) -> "JobFilter":
        """The filter in the query of an address. An empty field is none."""
        given = {name: value.strip() for name, value in query.items() if value.strip()}
        state = given.get("state")
        if state is not None and state not in STATES:
            raise UsageError(f"state: {state[:50]!r} is not one of {', '.join(STATES)}")
        text = given.get("text", "").lower()
        if text and not _PREFIX.fullmatch(text):
            raise UsageError(f"text: {text[:50]!r} is not the beginning of an id")
        attempt = given.get("attempt")
        if attempt is not None and not (attempt.isascii() and attempt.isdigit() and len(attempt) < 9):
            raise UsageError(f"attempt: {attempt[:50]!r} is not a number of attempts")
        return cls(
            state,
            given.get("key"),
            given.get("error"),
            None if attempt is None else int(attempt),
            text or None,
            _parse_instant("since", given.get("since"), now),
            _parse_instant("until", given.get("until"), now),
            check_uuid("before", given["before"]) if "before" in given else LAST_ID,
        )

    def query(self, **changes: object) -> str:
        """The query of the address of this list, or of one with some changes."""
        fields = {
            "state": self.state,
            "key": self.key,
            "error": self.error,
            "attempt": self.attempt,
            "text": self.text,
            "since": self.since,
            "until": self.until,
            "before": None if self.high == LAST_ID else self.high,
        } | changes
        return urlencode(
            {
                name: value.isoformat() if isinstance(value, datetime) else str(value)
                for name, value in fields.items()
                if value is not None
            }
        )

    @property
    def is_empty(self) -> bool:
        """Whether it lets all jobs of the queue pass."""
        return attrs.evolve(self, high=LAST_ID) == JobFilter()

    def as_json(self) -> dict[str, Any]:
        """For the audit row."""
        return {
            name: str(value)
            for name, value in attrs.asdict(self).items()
            if value is not None and value != LAST_ID
        }

    def values(self) -> dict[str, object]:
        """The parameters of show_live_jobs.sql and show_ended_jobs.sql."""
        low, high = _id_range(self.text) if self.text else (FIRST_ID, LAST_ID)
        return {
            "state": self.state,
            "outcome": self.state if self.state in ("failed", "cancelled") else None,
            "key": self.key,
            "error": self.error,
            "attempt": self.attempt,
            "since": self.since,
            "until": self.until,
            "low": low,
            "high": min(self.high, high),
        }

    @property
    def halves(self) -> tuple[str, ...]:
        """Where such jobs are: among the live ones, the ended ones, or both."""
        if self.state is None or self.state == "failed":
            return ("live", "ended")
        return ("ended",) if self.state in _ENDED else ("live",)


def _id_range(prefix: str) -> tuple[UUID, UUID]:
    digits = prefix.replace("-", "")[:32]
    last = UUID(digits.ljust(32, "f"))
    return UUID(digits.ljust(32, "0")), min(UUID(int=min(last.int + 1, LAST_ID.int)), LAST_ID)


def _parse_instant(field: str, text: str | None, now: datetime) -> datetime | None:
    """An instant, or a time ago: 30m, 24h, 7d. A browser's field of date and time has no zone: it is UTC."""
    if text is None:
        return None
    if match := _AGO.fullmatch(text):
        return now - timedelta(**{_UNITS[match[2]]: int(match[1])})
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{field}: {text[:50]!r} is not a time: use 2026-03-01T12:00, or 24h for a day ago"
        ) from None
    return check_instant(field, value if value.tzinfo else value.replace(tzinfo=UTC))
