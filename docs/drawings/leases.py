"""The times of a lease with a heartbeat, from trioboss/machines/lease.py."""

from docs.drawings.svg import Canvas, Theme
from trioboss.machines.lease import _BEATS, _EARLY

__all__ = ["draw_lease"]

_LEFT, _LENGTH, _Y = 60.0, 660.0, 90.0


def draw_lease(theme: Theme) -> str:
    """One period of a heartbeat: the renewals, the cancellation in the worker, and the loss in the database."""
    canvas = Canvas(800, 190, theme, "The times of a lease with a heartbeat")
    canvas.line(_LEFT, _Y, _LEFT + _LENGTH + 50, _Y, arrow=True)
    marks = [(0.0, "claim sent"), *((number / _BEATS, f"renewal {number}") for number in range(1, _BEATS))]
    for share, text in marks:
        _draw_time(canvas, share, text, above=True)
    _draw_time(
        canvas, 1 - _EARLY, "without an answer: the worker cancels the handler", above=False, anchor="end"
    )
    _draw_time(canvas, 1.0, "heartbeat", above=True)
    canvas.text(_LEFT + _LENGTH + 20, _Y + 66, "the leader may end the lease as lost", size=12, anchor="end")
    canvas.line(_LEFT + _LENGTH, _Y, _LEFT + _LENGTH, _Y + 54, dashed=True)
    note = f"A renewal is sent {_BEATS} times in each heartbeat; each answer starts the period again."
    canvas.text(_LEFT, 24, note, size=12, anchor="start", faint=True)
    return canvas.render()


def _draw_time(canvas: Canvas, share: float, text: str, *, above: bool, anchor: str = "middle") -> None:
    x = _LEFT + _LENGTH * share
    canvas.line(x, _Y - 7, x, _Y + 7)
    canvas.text(x, _Y - 24 if above else _Y + 28, text, size=12, anchor=anchor)
