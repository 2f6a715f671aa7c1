"""How a worker logs: one line for each event, for people or as JSON, without payloads and passwords.

Each line has the worker (host and process id) and, if it is about a job or logged inside a handler, its queue, its id
and its attempt; in a handler of batches those of the first job, and how many more there are. A failure has the stack.
"""

import json
import logging
import os
import platform
import sys
from datetime import UTC, datetime
from typing import TextIO

import attrs

from trioboss.event_texts import describe_event
from trioboss.events import Event
from trioboss.model.described_error import stack_text
from trioboss.model.job_context import JobLogFilter
from trioboss.model.texts import printable

__all__ = ["LogHandler", "set_up_logging"]

_COLORS = {"DEBUG": "2", "INFO": "32", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}
_CLEAR = "\r\x1b[2K"


def _describe(record: logging.LogRecord) -> str:
    event = getattr(record, "event", None)
    return describe_event(event) if isinstance(event, Event) else record.getMessage()


def _job_of(record: logging.LogRecord) -> tuple[str, str, object]:
    """The queue, the id and the attempt that a record is about; empty if there is none."""
    queue, id = (printable(str(getattr(record, name, ""))) for name in ("queue", "job_id"))
    return queue, id, getattr(record, "attempt", "")


def _more_jobs(record: logging.LogRecord) -> int:
    """How many jobs the batch has whose handler wrote the record, beside the first one, which it names."""
    size = getattr(record, "batch_size", 0)
    return size - 1 if isinstance(size, int) and size > 1 and not hasattr(record, "event") else 0


def _stack_of(record: logging.LogRecord) -> str:
    if record.exc_info and record.exc_info[1] is not None:
        return stack_text(record.exc_info[1])
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
        if more := _more_jobs(record):
            line["batch_size"] = 1 + more
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
        more = _more_jobs(record)
        if id:
            self._width = min(30, max(self._width, len(queue)))
            head += f" {self._paint(f'{queue:<{self._width}}', '36')} {id}"
            head += (f" #{attempt}" if attempt else "") + (f" +{more}" if more else "")
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

    shares_terminal: bool = False
    """Whether another process keeps a line on the terminal: each record then replaces it, until it is shown again."""

    _status: str = ""

    @property
    def is_terminal(self) -> bool:
        """Whether a person may read along."""
        return bool(self.stream.isatty())

    def show(self, text: str) -> None:
        """Replace the line; an empty text removes it."""
        self.acquire()
        try:
            if text or self._status:
                self._status = text
                self.stream.write(_CLEAR + self._cut(text))
                self.flush()
        except (OSError, ValueError):
            return
        finally:
            self.release()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record above the line."""
        try:
            line = self.format(record) + self.terminator
            clear = _CLEAR if self._status or self.shares_terminal else ""
            self.stream.write(clear + line + self._cut(self._status))
            self.flush()
        except Exception:
            self.handleError(record)

    def _cut(self, text: str) -> str:
        """The part of a text that fits on one row: only the last row of a text that wraps could be cleared."""
        if not text:
            return text
        # The terminal's echo of Ctrl-C, ^C, has to fit, too.
        room = self._columns() - len("^C") - 1
        return text if len(text) <= room else text[: max(0, room - 1)] + "…"

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self.stream.fileno()).columns or 80
        except (OSError, ValueError):  # not a terminal, or one without a size
            return 80

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
