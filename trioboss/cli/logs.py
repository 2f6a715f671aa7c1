"""How a worker logs: one line for each event, for people or as JSON, without payloads and passwords.

Each line has the worker (host and process id) and, if it is about a job or logged inside a handler, its queue, its id
and its attempt. A failure has the stack.
"""

import json
import logging
import os
import platform
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO

import attrs

from trioboss import events
from trioboss.cli.output import printable
from trioboss.cli.times import show_seconds
from trioboss.events import Event
from trioboss.model.job_context import JobLogFilter

__all__ = ["LogHandler", "set_up_logging"]

_COLORS = {"DEBUG": "2", "INFO": "32", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}
_CLEAR = "\r\x1b[2K"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


_TEXTS: dict[type[Event], Callable[..., str]] = {
    events.JobStarted: lambda e: f"started, waited {show_seconds(e.waited)}",
    events.JobCompleted: lambda e: f"completed, waited {show_seconds(e.waited)}, ran {show_seconds(e.ran)}",
    events.JobFailed: lambda e: (
        f"{'failed' if e.state == 'failed' else 'failed, will be retried'}: {e.error}, "
        f"waited {show_seconds(e.waited)}, ran {show_seconds(e.ran)}"
        + (
            ""
            if e.blocked_key is None
            else f"; it blocks key {e.blocked_key!r} until it is retried or deleted"
        )
    ),
    events.JobCancelled: lambda e: "cancelled" if e.ran is None else f"cancelled, ran {show_seconds(e.ran)}",
    events.LeaseExtended: lambda e: f"lease extended: it expires {show_seconds(e.expire_in)} after its start",
    events.JobReleased: lambda e: "released: it is queued again, no retry is spent",
    events.LeaseLostEvent: lambda e: f"lost: {e.reason}",
    events.JobStuck: lambda e: "stuck: its handler was cancelled and does not end",
    events.JobsRecovered: lambda e: (
        f"{_count(len(e.ids), 'job')} recovered: {'expired' if e.outcome == 'expired' else 'the worker is gone'}"
    ),
    events.TickFired: lambda e: f"schedule {e.key or '-'} fired for {e.due:%Y-%m-%d %H:%M:%S} UTC",
    events.QueueWarning: lambda e: f"{e.warning}: {e.message}",
    events.ListenerUp: lambda e: "listener: up",
    events.ListenerDown: lambda e: f"listener: connection lost, reconnecting: {e.reason}",
    events.LeaderChanged: lambda e: (
        f"maintenance: this worker {'does it' if e.leads else 'no longer does it'}"
    ),
    events.LoopBlocked: lambda e: f"a handler blocked the event loop for {show_seconds(e.seconds)}",
    events.ActorRestarted: lambda e: f"{e.actor}: crashed and was restarted: {e.error}",
    events.ErrorEvent: lambda e: f"{e.actor}: {e.error}",
    events.Stopped: lambda e: "stopped",
}


def _describe(record: logging.LogRecord) -> str:
    event = getattr(record, "event", None)
    text = _TEXTS.get(type(event)) if isinstance(event, Event) else None
    return printable(text(event)) if text else record.getMessage()


def _job_of(record: logging.LogRecord) -> tuple[str, str, object]:
    """The queue, the id and the attempt that a record is about; empty if there is none."""
    source: object = getattr(record, "event", None)
    if not isinstance(source, Event):
        return getattr(record, "queue", ""), getattr(record, "job_id", ""), getattr(record, "attempt", "")
    id = getattr(source, "id", None) or getattr(source, "job_id", None) or ""
    return getattr(source, "queue", None) or "", str(id), getattr(source, "attempt", "")


def _stack_of(record: logging.LogRecord) -> str:
    if record.exc_info and record.exc_info[1] is not None:
        return "".join(traceback.format_exception(record.exc_info[1])).rstrip()
    exception = getattr(getattr(record, "event", None), "exception", None)
    if isinstance(exception, BaseException):
        return "".join(traceback.format_exception(exception)).rstrip()
    return ""


class _JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def __init__(self, worker: str) -> None:
        super().__init__()
        self._worker = worker

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "worker": self._worker,
            "pid": os.getpid(),
            "message": _describe(record),
        }
        queue, id, attempt = _job_of(record)
        line |= {k: v for k, v in (("queue", queue), ("id", id), ("attempt", attempt)) if v != ""}
        event = getattr(record, "event", None)
        if isinstance(event, Event):
            line |= {"event": type(event).__name__, **_fields(event)}
        line |= getattr(record, "fields", {})
        if stack := _stack_of(record):
            line["stack"] = stack
        return json.dumps(line, default=str)


def _fields(event: Event) -> dict[str, object]:
    names = [field.name for field in attrs.fields(type(event)) if field.name != "exception"]
    return {name: getattr(event, name) for name in names}


class _LineFormatter(logging.Formatter):
    """Lines for people: time, level, worker, queue, id and attempt in columns, then the text."""

    def __init__(self, worker: str, *, color: bool) -> None:
        super().__init__()
        self._worker = worker
        self._color = color
        self._width = 8  # of the queue: that of the longest so far

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).strftime("%H:%M:%S.%f")[:-3]
        level = f"{record.levelname:<7}"
        head = f"{self._paint(time, '2')} {self._paint(level, _COLORS.get(record.levelname, '0'))} {self._worker}"
        queue, id, attempt = _job_of(record)
        if id:
            self._width = min(30, max(self._width, len(queue)))
            head += f" {self._paint(f'{queue:<{self._width}}', '36')} {id} #{attempt or '?'}"
        elif queue:
            head += f" {self._paint(queue, '36')}"
        stack = "".join("\n    " + line for line in _stack_of(record).splitlines())
        return f"{head} {_describe(record)}{stack}"

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._color else text


class LogHandler(logging.StreamHandler[TextIO]):
    """A log, and on a terminal a line below it that is kept up to date.

    Errors are ignored: a log that cannot be written, to a closed pipe or a full disk, must not stop the work.
    """

    status: str = ""

    @property
    def is_terminal(self) -> bool:
        """Whether a person may read along."""
        return bool(self.stream.isatty())

    def show(self, text: str) -> None:
        """Replace the line; an empty text removes it."""
        self.acquire()
        try:
            self.status = text
            self.stream.write(_CLEAR + text)
            self.flush()
        except (OSError, ValueError):
            return
        finally:
            self.release()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record above the line."""
        try:
            line = self.format(record) + self.terminator
            self.stream.write(_CLEAR + line + self.status if self.status else line)
            self.flush()
        except Exception:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Ignore it."""


def set_up_logging(level: str, *, as_json: bool, color: str = "auto") -> LogHandler:
    """Log to standard error."""
    handler = LogHandler(sys.stderr)
    worker = f"{platform.node()}:{os.getpid()}"
    colored = color == "always" or (color == "auto" and handler.is_terminal and "NO_COLOR" not in os.environ)
    handler.setFormatter(_JsonFormatter(worker) if as_json else _LineFormatter(worker, color=colored))
    handler.addFilter(JobLogFilter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    return handler
