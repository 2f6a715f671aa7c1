"""The way of one job, from its send to its end, with the statements that it meets."""

import attrs

from docs.drawings.svg import Canvas, Theme, estimate_width
from trioboss.sql import Catalog

__all__ = ["draw_way", "list_statements"]

_LANES = ("producer", "Postgres", "listener", "dispatcher", "slot")
_COLUMN, _TOP, _ROW, _SIZE = 210.0, 56.0, 38.0, 11.0


@attrs.frozen
class _Step:
    source: str
    target: str
    text: str
    statements: tuple[str, ...] = ()
    dashed: bool = False

    @property
    def label(self) -> str:
        """The text, with the files of its statements."""
        files = ", ".join(f"{name}.sql" for name in self.statements)
        return f"{self.text} ({files})" if files else self.text


_STEPS = (
    _Step("producer", "Postgres", "sends, and commits", ("send",)),
    _Step("producer", "Postgres", "notifies", ("notify_idle",)),
    _Step("Postgres", "listener", "notification", dashed=True),
    _Step("listener", "dispatcher", "rings its doorbell"),
    _Step("dispatcher", "Postgres", "claims", ("claim",)),
    _Step("Postgres", "dispatcher", "leased jobs", dashed=True),
    _Step("dispatcher", "slot", "hands a job over"),
    _Step("slot", "slot", "the runner calls the handler"),
    _Step("slot", "dispatcher", "the outcome, in the completer"),
    _Step("dispatcher", "Postgres", "settles, and claims again", ("complete", "claim")),
)


def draw_way(theme: Theme) -> str:
    """Five lanes, and an arrow for each step. A statement that does not exist is an error, and so is a label that is
    longer than its arrow."""
    catalog = Catalog("trioboss")
    height = _TOP + _ROW * len(_STEPS) + 20
    canvas = Canvas(_COLUMN * len(_LANES), height, theme, "The way of one job, from its send to its end")
    places = {name: _COLUMN * (number + 0.5) for number, name in enumerate(_LANES)}
    for name, x in places.items():
        canvas.line(x, 44, x, height - 8, dashed=True)
        canvas.box(x - 56, 10, 112, 32, fill=theme.accent if name == "Postgres" else "")
        canvas.text(x, 26, name, bold=True)
    for number, step in enumerate(_STEPS):
        for name in step.statements:
            catalog.get(name)
        y = _TOP + _ROW * (number + 0.6)
        _draw_step(canvas, number + 1, step, places[step.source], places[step.target], y)
    return canvas.render()


def _draw_step(canvas: Canvas, number: int, step: _Step, x1: float, x2: float, y: float) -> None:
    text = f"{number}. {step.label}"
    if x1 == x2:
        canvas.path(f"M {x1:.1f} {y - 8:.1f} h 26 v 16 h -22")
        canvas.text(x1 - 10, y, text, size=_SIZE, anchor="end", halo=True)
        return
    if estimate_width(text, _SIZE) > abs(x2 - x1) - 10:
        raise ValueError(f"the label is longer than its arrow: {text}")
    gap = 4 if x2 > x1 else -4
    canvas.line(x1 + gap, y + 8, x2 - gap, y + 8, arrow=True, dashed=step.dashed)
    canvas.text(min(x1, x2) + 10, y - 5, text, size=_SIZE, anchor="start", halo=True)


def list_statements() -> list[str]:
    """The statements of the drawing, in their order. tests/docs/test_way.py compares them with those of a job."""
    return [name for step in _STEPS for name in step.statements]
