"""The events of a boss: their levels in the log, and which are made only on demand."""

import logging

from trioboss import events
from trioboss.actors.reporter import _LEVELS, _ON_DEMAND, _OPT_IN

__all__ = ["describe_events"]


def describe_events() -> str:
    """A table of all events, then each with its fields."""
    lines = ["| event | level in the log | |", "|---|---|---|"]
    kinds = [getattr(events, name) for name in events.__all__ if name not in ("Event", "WorkerWip")]
    for kind in kinds:
        level = logging.getLevelName(_LEVELS[kind]).lower() if kind in _LEVELS else "not logged"
        note = ""
        if kind in _OPT_IN:
            note = "only for readers that name it"
        elif kind in _ON_DEMAND:
            note = "made only while a reader is subscribed"
        lines.append(f"| {{py:obj}}`~trioboss.{kind.__name__}` | {level} | {note} |")
    lines += ["", "```{eval-rst}"]
    for name in events.__all__:
        lines += [f".. autoclass:: trioboss.{name}()", "   :members:", "   :undoc-members:", ""]
    return "\n".join([*lines, "```"])
