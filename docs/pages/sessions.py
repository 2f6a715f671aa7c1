"""The run-time settings of our database sessions, each with its reason."""

from trioboss.postgres.dsn import CONNECTION_DEFAULTS
from trioboss.postgres.settings import OWN_SETTINGS, SESSION_SETTINGS

__all__ = ["describe_sessions"]


def describe_sessions() -> str:
    """The settings of each session, and the parameters of each connection."""
    lines = ["| setting | value | reason |", "|---|---|---|"]
    lines += [f"| `{each.name}` | `{each.value}` | {each.reason} |" for each in SESSION_SETTINGS]
    reason = "the plans and the names of our own statements; not in `boss.transaction()`"
    lines += [f"| `{name}` | `{value}` | {reason} |" for name, value in OWN_SETTINGS.items()]
    lines += ["", "| parameter of the connection | value |", "|---|---|"]
    lines += [f"| `{name}` | `{value}` |" for name, value in CONNECTION_DEFAULTS.items()]
    return "\n".join([*lines, ""])
