"""The life of an attempt, as the table of trioboss/machines/attempt.py."""

from collections.abc import Sequence

from docs.drawings.svg import Canvas, Theme
from trioboss.machines.attempt import TRANSITIONS, Action, AttemptState, Event

__all__ = ["draw_running_attempts", "draw_settling_attempts"]

_ROW, _COLUMN, _LEFT, _TOP = 26.0, 92.0, 108.0, 40.0
_SIGNS = {
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
    is_running = AttemptState.RUNNING <= state <= AttemptState.MANUAL
    return theme.accent if is_running else theme.box


def _draw(theme: Theme, events: Sequence[Event], title: str) -> str:
    """States down, events across; a cell has the next state, and the mark of what has to be done."""
    states = [state for state in AttemptState if any(_changes(state, event) for event in events)]
    signs = {TRANSITIONS[event][state][1] for event in events for state in states if _changes(state, event)}
    legend = {action: text for action, text in _SIGNS.items() if action in signs}
    width = max(_LEFT + _COLUMN * len(events) + 10, 640)
    height = _TOP + _ROW * len(states) + 24 + 17 * ((len(legend) + 1) // 2 + 1)
    canvas = Canvas(width, height, theme, title)
    for number, event in enumerate(events):
        canvas.text(_LEFT + _COLUMN * (number + 0.5), _TOP - 16, event.name.lower(), size=11, bold=True)
    for row, state in enumerate(states):
        y = _TOP + _ROW * row
        canvas.text(_LEFT - 8, y + _ROW / 2, state.name.lower(), size=11, anchor="end", bold=True)
        for number, event in enumerate(events):
            _draw_cell(canvas, state, event, _LEFT + _COLUMN * number, y)
    _draw_legend(canvas, legend, _TOP + _ROW * len(states) + 20)
    return canvas.render()


def _changes(state: AttemptState, event: Event) -> bool:
    return TRANSITIONS[event].get(state, (state, Action.NOTHING)) != (state, Action.NOTHING)


def _draw_cell(canvas: Canvas, state: AttemptState, event: Event, x: float, y: float) -> None:
    if state not in TRANSITIONS[event]:
        return  # it cannot happen
    following, action = TRANSITIONS[event][state]
    if not _changes(state, event):
        canvas.text(x + _COLUMN / 2, y + _ROW / 2, "-", size=11, faint=True)
        return
    canvas.box(x + 2, y + 2, _COLUMN - 4, _ROW - 4, fill=_fill(canvas.theme, following))
    label = f"{following.name.lower()} {action.value}".strip()
    canvas.text(x + _COLUMN / 2, y + _ROW / 2, label, size=10.5)


_SETTLING = [
    event for event in Event if AttemptState.RUNNING not in TRANSITIONS[event] and event is not Event.START
]
_SETTLING.remove(Event.GIVE_UP)  # of a handler that was cancelled and does not end
_SETTLING.remove(Event.ROLL_BACK)  # of a handler that has settled its job in a transaction of its own


def draw_running_attempts(theme: Theme) -> str:
    """From the claim until the outcome is known."""
    events = [event for event in Event if event not in _SETTLING]
    return _draw(theme, events, "An attempt from its claim until its outcome is known")


def draw_settling_attempts(theme: Theme) -> str:
    """From the known outcome until it is settled, or lost."""
    return _draw(theme, _SETTLING, "An attempt from its known outcome until it is settled")


def _draw_legend(canvas: Canvas, signs: dict[Action, str], top: float) -> None:
    half = (len(signs) + 1) // 2
    for number, (action, text) in enumerate(signs.items()):
        x = _LEFT if number < half else canvas.width / 2 + 30
        canvas.text(
            x, top + 17 * (number % half), f"{action.value}  {text}", size=11, anchor="start", faint=True
        )
    note = "-  nothing changes;  empty: it cannot happen"
    canvas.text(_LEFT, top + 17 * half, note, size=11, anchor="start", faint=True)
