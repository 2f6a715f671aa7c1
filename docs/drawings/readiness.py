"""The readiness of a live job and its transitions, from READINESS of trioboss/model/states.py."""

from docs.drawings.graphs import Arrow, Bend, Graph, Node
from docs.drawings.svg import Canvas, Theme
from trioboss.model.states import READINESS, Readiness, ReadinessEvent

__all__ = ["draw_readiness"]

_GONE = "gone"
_NODES = [
    Node("deferred", 150, 60, "waits for its time"),
    Node("waiting", 150, 240, "waits for its key"),
    Node("blocked", 150, 420, "reserved for flows", dashed=True),
    Node("ready", 470, 240, "the next claim may take it"),
    Node("active", 760, 240, "a worker has leased it", "accent"),
    Node("ended", 760, 420, "failed: waits for a person", "bad"),
    Node(_GONE, 1040, 240, "left the live table", "good"),
]
_BENDS = {
    ("deferred", "waiting"): Bend(0, 0.5),
    ("deferred", "ready"): Bend(0, 0.5),
    ("deferred", "active"): Bend(-30, 0.5),
    ("waiting", "active"): Bend(-46, 0.42),
    ("active", "deferred"): Bend(76, 0.5),
    ("active", "waiting"): Bend(-40, 0.6),
    ("active", "ready"): Bend(30, 0.5),
    ("blocked", "deferred"): Bend(-105, 0.5),
    ("blocked", "ready"): Bend(34, 0.45),
    ("ended", "ready"): Bend(0, 0.45),
}
_NOTED = (
    ReadinessEvent.RESCHEDULE,
    ReadinessEvent.UPDATE_JOBS,
    ReadinessEvent.COMPLETE_QUEUED,
    ReadinessEvent.QUARANTINE,
    ReadinessEvent.CANCEL,
    ReadinessEvent.DELETE,
)
"""Events that are possible in many states: lines below the drawing, because arrows would cover it."""


def draw_readiness(theme: Theme) -> str:
    """The readiness of live jobs, and the statements that change it."""
    canvas = Canvas(1130, 588, theme, "The readiness of a live job and the statements that change it")
    events: dict[tuple[str, str], list[str]] = {}
    for source, following in READINESS.items():
        for event, targets in following.items():
            if event in _NOTED:
                continue
            for target in targets:
                events.setdefault((source.value, target.value if target else _GONE), []).append(event.value)
    arrows = [Arrow(source, target, ", ".join(names)) for (source, target), names in events.items()]
    Graph(_NODES, arrows, _BENDS).draw(canvas)
    for number, event in enumerate(_NOTED):
        canvas.text(76, 480 + 18 * number, _describe(event), size=11.5, anchor="start", faint=True)
    return canvas.render()


def _describe(event: ReadinessEvent) -> str:
    """Where an event leads, as text; sources that have the same targets together."""
    moves: dict[str, list[str]] = {}
    for source in Readiness:
        if event in READINESS[source]:
            targets = " or ".join(target.value if target else _GONE for target in READINESS[source][event])
            moves.setdefault(targets, []).append(source.value)
    return f"{event.value}: " + "; ".join(
        f"{', '.join(found)} to {targets}" for targets, found in moves.items()
    )
