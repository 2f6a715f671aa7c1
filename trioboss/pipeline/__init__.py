"""Job history and bulk loads on Spark. `pip install trioboss[spark]` brings all it needs, Java included.

    from trioboss.pipeline import get_session

    spark = get_session()
    ended = spark.read.format("trioboss").option("dsn", dsn).option("table", "archive").load()

Nothing of Spark is imported before one of these names is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trioboss.pipeline.history import Source
    from trioboss.pipeline.jobs.archive import archive
    from trioboss.pipeline.jobs.audit import audit
    from trioboss.pipeline.jobs.capacity import capacity
    from trioboss.pipeline.jobs.compact import compact
    from trioboss.pipeline.jobs.erase import erase
    from trioboss.pipeline.jobs.load import load
    from trioboss.pipeline.jobs.report import report
    from trioboss.pipeline.jobs.synth import synth
    from trioboss.pipeline.lake import read_lake
    from trioboss.pipeline.payload import count_payloads, type_payload
    from trioboss.pipeline.releasing import LoadRefused
    from trioboss.pipeline.session import get_session, register

__all__ = [
    "LoadRefused",
    "Source",
    "archive",
    "audit",
    "capacity",
    "compact",
    "count_payloads",
    "erase",
    "get_session",
    "load",
    "read_lake",
    "register",
    "report",
    "synth",
    "type_payload",
]

_MODULES = {
    "LoadRefused": "releasing",
    "Source": "history",
    "archive": "jobs.archive",
    "audit": "jobs.audit",
    "capacity": "jobs.capacity",
    "compact": "jobs.compact",
    "count_payloads": "payload",
    "erase": "jobs.erase",
    "get_session": "session",
    "load": "jobs.load",
    "read_lake": "lake",
    "register": "session",
    "report": "jobs.report",
    "synth": "jobs.synth",
    "type_payload": "payload",
}

if not TYPE_CHECKING:  # a type checker that sees it takes every name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            module = import_module(f"{__name__}.{_MODULES[name]}")
        except ModuleNotFoundError as error:
            raise ImportError(
                f"no module {error.name!r}: pip install 'trioboss[spark]'", name=error.name
            ) from error
        return getattr(module, name)
