"""trioboss in three configurations, for peerbench's `peers.py`; the same as in our own catalogue."""

from typing import Any

__all__ = ["make_peers"]

_DRAINS = {"T3", "T3x2", "T4", "T5"}


def make_peers(command: list[str]) -> dict[str, dict[str, Any]]:
    """Peers of peerbench that run this command."""
    batched: dict[str, Any] = {
        "cmd": command,
        "lat": (10, {}),
        "drain": (10, {"prefetch": 1000}),
        "tune": [],
        "chunk": 0,
        "only": _DRAINS,
    }
    return {
        "trioboss": {"cmd": command, "lat": (10, {}), "drain": (10, {}), "tune": [], "chunk": 0},
        "trioboss-batched": batched,
        "trioboss-batched-lean": {**batched, "opts": {"keep_completed": 0}},
    }
