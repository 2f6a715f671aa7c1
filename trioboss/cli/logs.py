"""How a worker logs: one line for each event, for people or as JSON, without payloads and passwords."""

import json
import logging
import sys
from datetime import UTC, datetime

import attrs

from trioboss.cli.output import printable
from trioboss.events import Event, JobCompleted, JobFailed

__all__ = ["set_up_logging"]


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
        }
        event = getattr(record, "event", None)
        if isinstance(event, Event):
            line |= {"event": type(event).__name__, **attrs.asdict(event)}
        else:
            line["message"] = record.getMessage()
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class _LineFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).strftime("%H:%M:%S.%f")[:-3]
        event = getattr(record, "event", None)
        text = _describe_job(event) if isinstance(event, JobCompleted | JobFailed) else record.getMessage()
        line = f"{time} {record.levelname:<7} {text}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _describe_job(event: JobCompleted | JobFailed) -> str:
    outcome = f"{event.state} ({printable(event.error)})" if isinstance(event, JobFailed) else "completed"
    times = f"waited {event.waited * 1000:.1f} ms, ran {event.ran * 1000:.1f} ms"
    return f"{event.queue} {event.id} {outcome}, attempt {event.attempt}, {times}"


class _TolerantHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Ignores errors: a log that cannot be written, to a closed pipe or a full disk, must not stop the work."""

    def handleError(self, record: logging.LogRecord) -> None:
        return


def set_up_logging(level: str, *, as_json: bool) -> None:
    """Log to standard error."""
    handler = _TolerantHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if as_json else _LineFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
