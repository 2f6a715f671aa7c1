"""The states of a job, from TRANSITIONS of trioboss/model/states.py."""

from docs.drawings.graphs import Arrow, Bend, Graph, Node
from docs.drawings.svg import Canvas, Theme
from trioboss.model.states import TRANSITIONS, Action, JobState

__all__ = ["draw_states"]

_NODES = [
    Node("created", 100, 160, "waits, never attempted"),
    Node("retry", 100, 340, "waits for another attempt"),
    Node("active", 440, 250, "a worker has leased it", "accent"),
    Node("completed", 760, 160, "ended", "good"),
    Node("failed", 760, 340, "ended", "bad"),
    Node("cancelled", 440, 50, "ended"),
]
_BENDS = {
    ("created", "cancelled"): Bend(-22, 0.5),
    ("cancelled", "created"): Bend(-14, 0.5),
    ("cancelled", "retry"): Bend(26, 0.72),
    ("retry", "cancelled"): Bend(0, 0.62),
    ("created", "active"): Bend(0, 0.6),
    ("retry", "active"): Bend(-10, 0.55),
    ("active", "retry"): Bend(-22, 0.5),
    ("failed", "retry"): Bend(-0.1, 0.5),
}
_CROSSING = {
    (JobState.CREATED, JobState.FAILED),
    (JobState.RETRY, JobState.FAILED),
    (JobState.FAILED, JobState.CREATED),
}


def draw_states(theme: Theme) -> str:
    """The six states, and the actions that lead from one to another."""
    canvas = Canvas(850, 466, theme, "The states of a job and the actions between them")
    actions: dict[tuple[JobState, JobState], list[str]] = {}
    for source, following in TRANSITIONS.items():
        for action, targets in following.items():
            for target in targets:
                if not _is_noted(source, action, target):
                    actions.setdefault((source, target), []).append(action.value)
    arrows = [Arrow(source, target, ", ".join(names)) for (source, target), names in actions.items()]
    Graph(_NODES, arrows, _BENDS).draw(canvas)
    for number, action in enumerate((Action.COMPLETE_QUEUED, Action.QUARANTINE, Action.RETRY)):
        moves = [
            f"{source} to {target}"
            for source, following in TRANSITIONS.items()
            for target in following.get(action, ())
            if _is_noted(source, action, target)
        ]
        text = f"{action}: {', '.join(moves)}"
        canvas.text(25, 400 + 18 * number, text, size=11.5, anchor="start", faint=True)
    return canvas.render()


def _is_noted(source: JobState, action: Action, target: JobState) -> bool:
    """Whether a move is text below the drawing: its arrow would cross the others."""
    return action is Action.COMPLETE_QUEUED or (source, target) in _CROSSING
