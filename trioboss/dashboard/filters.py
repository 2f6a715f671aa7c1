"""The filter of a list of jobs. It is the query of the page's address, so that a list can be sent to somebody."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import attrs

from trioboss.errors import UsageError
from trioboss.model.check import check_instant, check_uuid

__all__ = [
    "ACTION_STATES",
    "FIELDS",
    "FIRST_ID",
    "LAST_ID",
    "STATES",
    "Counted",
    "JobFilter",
    "list_actions",
]

FIRST_ID = UUID(int=0)
LAST_ID = UUID(int=(1 << 128) - 1)

STATES = ("queued", "deferred", "waiting", "ready", "retry", "active", "completed", "failed", "cancelled")
"""The subsets to which a list can be limited: the states of jobs, and what queued ones wait for."""

_EXACT = ("key", "error")
_TIMES = ("since", "until")

FIELDS = ("state", "key", "error", "attempt", "text", "since", "until")
"""The fields of a filter in an address or a form."""

ACTION_STATES: Mapping[str, str] = {
    "retry": "failed",
    "cancel": "unfinished",
    "resume": "cancelled",
    "run-now": "deferred",
    "priority": "queued",
    "redrive": "queued",
}
"""The jobs that each action changes. An action that is not here changes all. Unfinished jobs are queued or active."""

_ALL_ACTIONS = ("retry", "cancel", "resume", "run-now", "priority", "delete")
# The one that people mean most often comes first.
_ACTIONS: Mapping[str | None, tuple[str, ...]] = {
    "queued": ("cancel", "run-now", "priority", "delete"),
    "deferred": ("run-now", "cancel", "priority", "delete"),
    "waiting": ("cancel", "priority", "delete"),
    "ready": ("cancel", "priority", "delete"),
    "retry": ("cancel", "run-now", "priority", "delete"),
    "active": ("cancel", "delete"),
    "completed": ("delete",),
    "failed": ("retry", "delete"),
    "cancelled": ("resume", "delete"),
}

_TABLES: Mapping[str | None, frozenset[str]] = {
    None: frozenset({"live", "ended"}),
    "failed": frozenset({"live", "ended"}),  # a failed job that blocks its key is live
    "completed": frozenset({"ended"}),
    "cancelled": frozenset({"ended"}),
}
# Text in an id, or its beginning and its end as the pages show them: 0192a1b2…c3d4e5f60718.
_ID_PARTS = re.compile(r"([0-9a-f-]{1,36})?(?:(?:…|\.\.\.)([0-9a-f]{1,12}))?")
_FEWEST_DIGITS = 8  # of the time that an id begins with: fewer are searched as text
_IDS_SINCE = datetime(2020, 1, 1, tzinfo=UTC)
_IDS_AHEAD = timedelta(days=365)
_AGO = re.compile(r"(\d{1,4})(m|h|d)")
_DAYS = {"today": timedelta(0), "yesterday": timedelta(days=1)}
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_SNAPSHOT = re.compile(r"([0-9]{1,18}):([0-9]{1,18}):((?:[0-9]{1,18}(?:,(?!$)|$))*)")


def list_actions(state: str | None, *, has_dead_letters: bool = False) -> tuple[str, ...]:
    """The actions that change jobs of a state; all, if there is none. Dead letters can be redriven."""
    actions = _ACTIONS.get(state, _ALL_ACTIONS)
    return ("redrive", *actions) if has_dead_letters and "priority" in actions else actions


@attrs.frozen
class Counted:
    """The moment at which jobs were counted. An action changes no others: see `show_committed.sql`."""

    on: datetime
    committed: str
    """The transactions that had committed, as a pg_snapshot."""

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> "Counted":
        """That of a form or an address, as `fields` has written it."""
        on = check_instant("counted_on", given.get("counted_on"))
        committed = given.get("committed", "")
        if not _is_snapshot(committed):
            raise UsageError("committed: this is not the moment of a count: count again")
        return cls(on, committed)

    def fields(self) -> dict[str, str]:
        """For the form of the action."""
        return {"counted_on": self.on.isoformat(), "committed": self.committed}


def _is_snapshot(text: str) -> bool:
    """Whether Postgres reads it as one: the oldest transaction in progress, the next one, and those in progress."""
    match = _SNAPSHOT.fullmatch(text)
    if match is None:
        return False
    oldest, following = int(match[1]), int(match[2])
    running = [int(xid) for xid in match[3].split(",") if xid]
    return 0 < oldest <= following and all(
        low <= xid < following for low, xid in pairwise([oldest, *running])
    )


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
    """Text in the id, or its beginning and its end with an ellipsis between them."""
    since: datetime | None = None
    """Ended jobs by when they ended, the others by when they were sent."""
    until: datetime | None = None
    high: UUID = LAST_ID
    """Only older ids: where a page of the list begins."""
    within: str | None = None
    """A second state: that of the jobs which an action changes. It is not in the address."""
    counted: Counted | None = None
    """Only jobs that were there then, and have not changed since. It is not in the address."""
    typed: Mapping[str, str] = attrs.field(factory=dict, eq=False)
    """The times as a person has typed them: in the address of a list "1h" stays the last hour."""

    @classmethod
    def parse(cls, query: Mapping[str, str], now: datetime) -> "JobFilter":
        """The filter in the query of an address. An empty field is none."""
        # Keys and classes of errors are compared as they are: " " is a key, and no filter would mean all jobs.
        given = {name: value if name in _EXACT else value.strip() for name, value in query.items()}
        given = {name: value for name, value in given.items() if value}
        state = given.get("state")
        if state is not None and state not in STATES:
            raise UsageError(f"state: {state[:50]!r} is not one of {', '.join(STATES)}")
        text = given.get("text", "").lower()
        if not _ID_PARTS.fullmatch(text) or (text and not text.strip("-")):  # no filter would mean all jobs
            raise UsageError(f"text: {text[:50]!r} is not in any id: these have the digits 0 to 9 and a to f")
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
            typed={name: given[name] for name in _TIMES if name in given},
        )

    def fields(self) -> dict[str, str]:
        """The fields of a form that has this filter. Times are instants: an action changes what was counted."""
        given = {name: getattr(self, name) for name in FIELDS}
        return {
            name: value.isoformat() if isinstance(value, datetime) else str(value)
            for name, value in given.items()
            if value is not None
        }

    def query(self, **changes: object) -> str:
        """The query of the address of this list, or of one with some changes."""
        before = {} if self.high == LAST_ID else {"before": self.high}
        fields = {**self.fields(), **self.typed, **before, **changes}
        return urlencode({name: str(value) for name, value in fields.items() if value is not None})

    @property
    def is_empty(self) -> bool:
        """Whether it lets all jobs of the queue pass."""
        return attrs.evolve(self, high=LAST_ID, within=None) == JobFilter()

    def for_action(self, action: str, counted: Counted) -> "JobFilter":
        """The jobs that the action changes, of those that were there when they were counted."""
        until = counted.on if self.until is None else min(self.until, counted.on)
        return attrs.evolve(self, until=until, within=ACTION_STATES.get(action), counted=counted)

    def as_json(self) -> dict[str, Any]:
        """For the audit row."""
        return {
            name: str(value)
            for name, value in attrs.asdict(self).items()
            if value is not None and value != LAST_ID and name not in ("within", "counted", "typed")
        }

    def values(self) -> dict[str, object]:
        """The parameters of show_live_jobs.sql and show_ended_jobs.sql."""
        prefix, digits = _split_id(self.text)
        low, high = _id_range(prefix) if prefix else (FIRST_ID, LAST_ID)
        outcomes = [state for state in (self.state, self.within) if state in ("failed", "cancelled")]
        return {
            "state": self.state,
            "within": self.within,
            "outcome": outcomes[0] if outcomes else None,
            "digits": digits,
            "key": self.key,
            "error": self.error,
            "attempt": self.attempt,
            "since": self.since,
            "until": self.until,
            "low": low,
            "high": min(self.high, high),
            "committed": self.counted and self.counted.committed,
            "counted_on": self.counted and self.counted.on,
        }

    @property
    def tables(self) -> tuple[str, ...]:
        """Where such jobs are: among the live ones, the ended ones, or both; nowhere if no job can have both states."""
        live = frozenset({"live"})
        found = _TABLES.get(self.state, live) & _TABLES.get(self.within, live)
        return tuple(name for name in ("live", "ended") if name in found)


def _split_id(text: str | None) -> tuple[str | None, str | None]:
    """How an id begins, for which there is an index, and other digits that it contains."""
    match = _ID_PARTS.fullmatch(text or "")
    if match is None:
        return None, None
    given, tail = (part and part.replace("-", "") for part in match.groups())
    if given and (tail or _may_begin_id(given)):
        return given, tail or None
    return None, given or tail or None


def _may_begin_id(digits: str) -> bool:
    """Whether an id (UUIDv7) begins with these digits: a time in which jobs may have been sent, or a whole id."""
    if len(digits) < _FEWEST_DIGITS or len(digits) >= 32:
        return len(digits) >= 32
    first = int(digits[:12].ljust(12, "0"), 16) / 1000
    return _IDS_SINCE.timestamp() <= first <= (datetime.now(UTC) + _IDS_AHEAD).timestamp()


def _id_range(prefix: str) -> tuple[UUID, UUID]:
    digits = prefix.replace("-", "")[:32]
    last = UUID(digits.ljust(32, "f"))
    return UUID(digits.ljust(32, "0")), min(UUID(int=min(last.int + 1, LAST_ID.int)), LAST_ID)


def _parse_instant(field: str, text: str | None, now: datetime) -> datetime | None:
    """An instant, a time ago (30m, 24h, 7d), or the beginning of a day (today, yesterday). Without a zone it is UTC."""
    if text is None:
        return None
    if text in _DAYS:
        return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - _DAYS[text]
    if match := _AGO.fullmatch(text):
        return now - timedelta(**{_UNITS[match[2]]: int(match[1])})
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{field}: {text[:50]!r} is not a time: use 2026-03-01T12:00, 24h for a day ago, today or yesterday"
        ) from None
    return check_instant(field, value if value.tzinfo else value.replace(tzinfo=UTC))
