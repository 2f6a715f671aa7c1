"""A crash between a commit and a message, in four drawings: the page that says why a queue is in the database."""

from collections.abc import Callable, Sequence

import attrs

from docs.drawings.svg import Canvas, Theme

__all__ = ["CRASH_DRAWINGS"]

_WIDTH, _LEFT = 720.0, 110.0
_TOP, _LANE = 30.0, 50.0
_LANES = ("shop", "Postgres", "broker", "worker")


@attrs.define
class _Times:
    """Lanes of time, from left to right, with the things that happen in each."""

    canvas: Canvas
    lanes: Sequence[str]

    def y(self, lane: str) -> float:
        """The height of a lane."""
        return _TOP + _LANE * self.lanes.index(lane)

    def draw_lanes(self, ends: dict[str, float]) -> None:
        """A line for each lane; ``ends``: where those end that do not reach the right margin."""
        for lane in self.lanes:
            self.canvas.text(_LEFT - 14, self.y(lane), lane, anchor="end", bold=True)
            self.canvas.line(_LEFT, self.y(lane), ends.get(lane, _WIDTH - 16), self.y(lane))

    def event(self, lane: str, x: float, text: str, fill: str = "") -> None:
        """Something that happens."""
        width = 16 + 7 * len(text)
        self.canvas.box(x - width / 2, self.y(lane) - 14, width, 28, fill=fill)
        self.canvas.text(x, self.y(lane), text)

    def cause(self, lane: str, x: float, to_lane: str, to_x: float) -> None:
        """An arrow from an event to the one that it causes, in a lane below."""
        self.canvas.line(x, self.y(lane) + 14, to_x, self.y(to_lane) - 16, arrow=True)


def _begin(
    theme: Theme, title: str, lanes: Sequence[str] = _LANES, ends: dict[str, float] | None = None
) -> _Times:
    times = _Times(Canvas(_WIDTH, 2 * _TOP + _LANE * (len(lanes) - 1), theme, title), lanes)
    times.draw_lanes(ends or {})
    return times


def _draw_two_systems(theme: Theme) -> str:
    times = _begin(theme, "The order is committed, then a message is sent to a broker")
    times.event("shop", 190, "take an order")
    times.cause("shop", 200, "Postgres", 262)
    times.event("Postgres", 280, "commit", theme.good)
    times.event("shop", 420, "send a message")
    times.cause("shop", 430, "broker", 458)
    times.event("broker", 465, "message", theme.good)
    times.cause("broker", 480, "worker", 560)
    times.event("worker", 590, "send the e-mail", theme.good)
    return times.canvas.render()


def _draw_lost(theme: Theme) -> str:
    times = _begin(theme, "The process dies after the commit: the message is never sent", ends={"shop": 380})
    times.event("shop", 190, "take an order")
    times.cause("shop", 200, "Postgres", 262)
    times.event("Postgres", 280, "commit", theme.good)
    times.canvas.cross(380, times.y("shop"), 8)
    times.event("shop", 460, "the process dies", theme.bad)
    times.event("broker", 500, "no message", theme.bad)
    times.event("worker", 590, "no e-mail, no error", theme.bad)
    return times.canvas.render()


def _draw_too_early(theme: Theme) -> str:
    times = _begin(theme, "The message is sent first, and the transaction is rolled back")
    times.event("shop", 190, "send a message")
    times.cause("shop", 200, "broker", 245)
    times.event("broker", 255, "message")
    times.cause("broker", 270, "worker", 380)
    times.event("worker", 420, "e-mail for no order", theme.bad)
    times.event("shop", 430, "write the order")
    times.cause("shop", 445, "Postgres", 520)
    times.event("Postgres", 545, "roll back", theme.bad)
    return times.canvas.render()


def _draw_one_commit(theme: Theme) -> str:
    times = _begin(
        theme,
        "The order and the job are one commit, which notifies a worker",
        ("shop", "Postgres", "worker"),
    )
    times.event("shop", 230, "take an order, send a job")
    times.cause("shop", 260, "Postgres", 345)
    times.event("Postgres", 370, "commit: order and job", theme.good)
    times.cause("Postgres", 420, "worker", 540)
    times.canvas.text(520, times.y("Postgres") + 20, "notification", size=11, anchor="start")
    times.event("worker", 580, "send the e-mail", theme.good)
    return times.canvas.render()


CRASH_DRAWINGS: dict[str, Callable[[Theme], str]] = {
    "crash-1-two-systems": _draw_two_systems,
    "crash-2-lost": _draw_lost,
    "crash-3-too-early": _draw_too_early,
    "crash-4-one-commit": _draw_one_commit,
}
