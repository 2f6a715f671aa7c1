"""The options of queues, jobs and workers: what each means, its type, default, unit, limits and an example."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from docs.pages.api import resolve_name
from docs.pages.docstrings import attribute_texts, attribute_types
from trioboss.api.handlers import WorkOptions
from trioboss.model import check
from trioboss.model.job import OPTIONS, NewJob, SendOptions
from trioboss.model.policy import Policy
from trioboss.model.queue import QueueOptions, QueueSettings

__all__ = ["Option", "describe_queue_options", "describe_send_options", "describe_work_options"]
__all__ += ["queue_options", "send_options", "work_options"]

_EXAMPLE = re.compile(r"\s*Example:\s+``(.*?)``\.$", re.DOTALL)
_DAY = 86400


@attrs.frozen
class Option:
    """An option, as the reference describes it."""

    name: str
    type: str
    default: str
    unit: str
    limits: str
    meaning: str
    example: str


# -- limits, by the function that checks the option


def _limits_of_count(low: int = 0) -> str:
    return f"a whole number from {low:,} to {check._MOST:,}"


def _limits_of_duration(low: float = 0.0, above: bool = False) -> str:
    bound = f"more than {low:g}" if above else f"at least {low:g}"
    return f"{bound}, and less than 100 years"


_LIMITS: Mapping[str, Callable[..., str]] = {
    "_parse_policy": lambda: "one of " + ", ".join(f"`{policy}`" for policy in Policy),
    "check_count": _limits_of_count,
    "check_duration": _limits_of_duration,
    "check_flag": lambda: "`True` or `False`",
    "check_factor": lambda: "a number from 1 to 100",
    "check_fraction": lambda **_: "a number from 0 to 1",
    "check_key": lambda: f"text of 1 to {check._KEY_BYTES:,} bytes, without the NUL character",
    "check_name": lambda: "1 to 200 ASCII letters, digits and any of `_ . - /`",
    "check_priority": lambda: f"a whole number from {-check._INT4 - 1:,} to {check._INT4:,}",
    "check_start": lambda: "less than 100 years from now; a time from 1900 to 2199, with a time zone",
    "check_trace": lambda: f"a dict of printable ASCII text, at most {check._TRACE_CHARACTERS:,} characters",
    "check_uuid": lambda: "a UUID, or its text",
}


def _describe_limits(field: "attrs.Attribute[Any]") -> str:
    return _LIMITS[field.metadata["check"].__name__](**field.metadata["limits"])


# -- units

_SECONDS = "seconds, or a `timedelta`"
_UNITS = {
    "batch_size": "jobs",
    "concurrency": "calls of the handler",
    "max_lease_extensions": "extensions of an attempt",
    "prefetch": "jobs",
    "retry_jitter": "a fraction of the delay",
    "retry_limit": "retries, after the first attempt",
    "retry_multiplier": "a factor",
    "start_after": "seconds from now, a `timedelta`, an aware `datetime`, or ISO 8601 text",
    "warning_queue_size": "queued jobs",
}
"""The unit of an option that is a number. Durations are known by their check; other options are no quantities."""


def _unit_of(name: str, check: str = "") -> str:
    return _SECONDS if check == "check_duration" else _UNITS.get(name, "none")


# -- defaults and texts


def _show_default(value: object) -> str:
    if isinstance(value, float) and value >= _DAY and value % _DAY == 0:
        return f"`{value:g}` ({value / _DAY:g} days)".replace("1.2096e+06", "1209600")
    if isinstance(value, float):
        return f"`{value:g}`"
    return f"`{str(value) if isinstance(value, Policy) else value!r}`"


def _split(text: str) -> tuple[str, str]:
    """A text, and the example at its end."""
    found = _EXAMPLE.search(text)
    example = re.sub(r"\s+", " ", found[1]) if found else ""
    return re.sub(r"\s+", " ", _EXAMPLE.sub("", text)), example


def _options(owner: type, terms: Callable[[str], tuple[str, str, str]]) -> Iterator[Option]:
    """The options of a TypedDict. ``terms`` has the default, the unit and the limits of each."""
    texts = attribute_texts(owner)
    for name, type in attribute_types(owner).items():
        meaning, example = _split(texts.get(name, ""))
        yield Option(name, type, *terms(name), meaning, example)


def _unit(field: "attrs.Attribute[Any]") -> str:
    return _unit_of(field.name, field.metadata["check"].__name__)


def queue_options() -> list[Option]:
    """The options of `create_queue`."""
    fields = attrs.fields_dict(QueueSettings)
    return list(
        _options(
            QueueOptions,
            lambda name: (
                _show_default(fields[name].default),
                _unit(fields[name]),
                _describe_limits(fields[name]),
            ),
        )
    )


_CALL = [
    Option(
        "conn",
        "CallerConnection | None",
        "`None`",
        "none",
        "a connection of `boss.transaction()`, a blocking one of psycopg, or one of Django or SQLAlchemy on psycopg 3",
        "The job is part of the transaction of this connection: it exists if and when that commits. `None`: the call "
        "is a transaction of its own. All methods that write take it.",
        "conn=conn",
    ),
    Option(
        "on_duplicate",
        "Literal['refuse', 'update']",
        "`'refuse'`",
        "none",
        "`refuse` or `update`; `update` needs an `id` or a `singleton_key`",
        "`update`: the queued job of the same id, or else the newest of the same key, gets this data and these "
        "options; without such a job one is sent. Only `send` takes it.",
        'singleton_key="customer-7", on_duplicate="update"',
    ),
]
"""The options of a call of `send`. The others are those of a job."""


def send_options() -> list[Option]:
    """The options of `send`."""
    fields = attrs.fields_dict(NewJob)
    of_jobs = _options(
        SendOptions,
        lambda name: (
            "that of the queue" if name in OPTIONS else "`None`",
            _unit(fields[name]),
            _describe_limits(fields[name]),
        ),
    )
    return [*of_jobs, *_CALL]


_COUNT, _PRIORITY = _limits_of_count(1), _LIMITS["check_priority"]()
WORK_TERMS = {
    "data": (
        "`None`",
        "an attrs class, dataclass, TypedDict or pydantic model, a type like `list[int]`, or a `Decoder`",
    ),
    "batch_size": ("`None`", _COUNT),
    "thread": ("`False`", "`True` or `False`; not with `asyncio`"),
    "asyncio": ("`False`", "`True` or `False`; not with `thread`"),
    "concurrency": ("`1`", _COUNT),
    "prefetch": ("`None`", _limits_of_count(0)),
    "min_priority": ("`None`", _PRIORITY),
    "max_priority": ("`None`", _PRIORITY),
    "priority": ("`True`", "`True` or `False`"),
    "middleware": ("`()`", "async functions of two arguments"),
    "lifespan": ("`None`", "an async context manager, or a function that returns one"),
}
"""Default and limits of the options of `work`: they are checked in `trioboss/api/working.py`."""


def _work_terms(name: str) -> tuple[str, str, str]:
    default, limits = WORK_TERMS[name]
    return default, _unit_of(name), limits


_KINDS = [
    Option(
        "data",
        "type | Decoder | None",
        *_work_terms("data"),
        "The type of `job.data`. A job whose data does not fit fails without retries (`DataMismatch`). Without it, "
        "`job.data` is the JSON that was sent.",
        "data=Email",
    ),
    Option(
        "batch_size",
        "int | None",
        *_work_terms("batch_size"),
        "The handler gets lists of at most this many jobs. `None`: it gets one job.",
        "batch_size=100",
    ),
    Option(
        "thread",
        "bool",
        *_work_terms("thread"),
        "The handler is a plain function, and runs in a thread.",
        "thread=True",
    ),
    Option(
        "asyncio",
        "bool",
        *_work_terms("asyncio"),
        "The handler is an asyncio function, and runs through trio-asyncio.",
        "asyncio=True",
    ),
]
"""The options of `work` that decide what a handler is: they are in its signature and not in WorkOptions."""


def work_options() -> list[Option]:
    """The options of `work`."""
    return [*_KINDS, *_options(WorkOptions, _work_terms)]


# -- Markdown


def _describe(options: list[Option], prefix: str, call: str) -> str:
    """A section for each option. The anchors have a prefix: queues and jobs have options of the same name."""
    lines = []
    for option in options:
        lines += [
            f"({prefix}-{option.name})=",
            f"### `{option.name}`",
            "",
            _as_markdown(option.meaning),
            "",
            f"- type: `{option.type}`",
            f"- default: {option.default}",
            f"- unit: {option.unit}",
            f"- limits: {option.limits}",
            f"- example: `{call.replace('…', option.example)}`",
            "",
        ]
    return "\n".join(lines)


def _as_markdown(text: str) -> str:
    """A text of a docstring: names in single backticks become links, where the reference has them."""
    text = re.sub(r"(?<!`)`(?!`)([\w.]+)`(?!`)", _link, text)
    return text.replace("``", "`")


def _link(found: re.Match[str]) -> str:
    return f"{{py:obj}}``{found[1]}``" if resolve_name(found[1]) else f"``{found[1]}``"


def describe_queue_options() -> str:
    """The options of `create_queue` and `update_queue`."""
    return _describe(queue_options(), "queue", 'await boss.create_queue("email", …)')


def describe_send_options() -> str:
    """The options of `send`."""
    return _describe(send_options(), "send", 'await boss.send("email", data, …)')


def describe_work_options() -> str:
    """The options of `work`."""
    return _describe(work_options(), "work", 'await boss.work("email", send_email, …)')
