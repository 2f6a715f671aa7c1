"""The life of an attempt, as the table of trioboss/machines/attempt.py."""

from docs.drawings.svg import Canvas, Theme
from trioboss.machines.attempt import TRANSITIONS, Action, AttemptState, Event

__all__ = ["draw_attempts"]

_ROW, _COLUMN, _LEFT, _TOP = 26.0, 92.0, 108.0, 40.0
_MARKS = {
    Action.CANCEL_HANDLER: "cancel the handler",
    Action.SETTLE: "put the outcome into the completer",
    Action.REPORT_SETTLED: "report it as settled",
    Action.REPORT_MANUAL: "report the handler's own settlement",
    Action.REPORT_UNANSWERED: "count it as settled",
    Action.REPORT_REFUSED: "report that it came too late",
    Action.REPORT_LOST: "report the lost lease",
    Action.REPORT_CANCELLED: "report the cancellation",
    Action.RECOVER: "recover the lease",
    Action.REPORT_LOST_AND_RECOVER: "report the lost lease, and recover it",
}


def _fill(theme: Theme, state: AttemptState) -> str:
    if state is AttemptState.SETTLED:
        return theme.good
    if state in (AttemptState.LOST, AttemptState.ABANDONED, AttemptState.LEASE_LOST):
        return theme.bad
    return (
        theme.accent
        if state in (AttemptState.RUNNING, AttemptState.TENTATIVE, AttemptState.MANUAL)
        else theme.box
    )


def draw_attempts(theme: Theme) -> str:
    """States down, events across; a cell has the next state, and the mark of what has to be done."""
    columns = list(Event)
    width = _LEFT + _COLUMN * len(columns) + 10
    height = _TOP + _ROW * len(AttemptState) + 24 + 17 * ((len(_MARKS) + 1) // 2)
    canvas = Canvas(width, height, theme, "The states of an attempt, and what each event does to it")
    for number, event in enumerate(columns):
        x = _LEFT + _COLUMN * (number + 0.5)
        canvas.text(x, _TOP - 16, event.name.lower(), size=11, bold=True)
    for row, state in enumerate(AttemptState):
        y = _TOP + _ROW * row
        canvas.text(_LEFT - 8, y + _ROW / 2, state.name.lower(), size=11, anchor="end", bold=True)
        for number, event in enumerate(columns):
            cell = TRANSITIONS[event].get(state)
            x = _LEFT + _COLUMN * number
            if cell is None:
                continue  # it cannot happen
            following, action = cell
            if following is state and action is Action.NOTHING:
                canvas.text(x + _COLUMN / 2, y + _ROW / 2, "-", size=11, faint=True)
                continue
            canvas.box(x + 2, y + 2, _COLUMN - 4, _ROW - 4, fill=_fill(theme, following))
            canvas.text(
                x + _COLUMN / 2, y + _ROW / 2, f"{following.name.lower()} {action.value}".strip(), size=10
            )
    _draw_legend(canvas, _TOP + _ROW * len(AttemptState) + 22)
    return canvas.render()


def _draw_legend(canvas: Canvas, top: float) -> None:
    half = (len(_MARKS) + 1) // 2
    for number, (action, text) in enumerate(_MARKS.items()):
        x = _LEFT if number < half else canvas.width / 2
        y = top + 17 * (number % half)
        canvas.text(x, y, f"{action.value}  {text}", size=11, anchor="start", faint=True)
    canvas.text(
        canvas.width - 12,
        top,
        "-  nothing changes;  empty: it cannot happen",
        size=11,
        anchor="end",
        faint=True,
    )
