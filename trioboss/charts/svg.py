"""Charts in SVG. Colours come from the page's style, so that they follow the light or dark scheme.

A screen reader does not read the parts of an image: each chart has a description of its own.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from math import ceil, log10

import attrs

from trioboss.charts.elements import Html, join, tag
from trioboss.charts.numbers import duration, instant

__all__ = ["Axis", "Series", "bars", "curves", "describe", "heat", "share_bar", "sparkline", "times"]

_TICKS = (
    5,
    10,
    15,
    30,
    *(60 * hours for hours in (1, 2, 3, 6, 12, 24, 48, 72, 168, 336, 720, 2160, 8760)),
)  # minutes
_DURATIONS = (
    *(1, 2, 4, 10, 20, 30, 60),
    *(60 * minutes for minutes in (2, 4, 10, 20, 30, 60)),
    *(3600 * hours for hours in (2, 4, 6, 12, 24)),
    *(86400 * days for days in (2, 4, 10, 20, 40, 100, 200, 400, 1000, 10_000, 100_000)),
)  # seconds
Format = Callable[[float], str]


@attrs.frozen
class Series:
    """A line or a part of the bars: one value for each time, None where there is none."""

    name: str
    style: str
    """The class by which it gets its colour."""
    values: Sequence[float | None]


@attrs.frozen
class Axis:
    """The times of a chart, and its size."""

    times: Sequence[datetime]
    period: timedelta
    width: float
    height: float
    left: float = 46
    bottom: float = 20
    top: float = 8

    @property
    def interval(self) -> float:
        """The width of one period."""
        return (self.width - self.left) / max(1, len(self.times))

    def x(self, index: int) -> float:
        """Where a period begins."""
        return self.left + index * self.interval

    def y(self, value: float, highest: float) -> float:
        """How high a value is."""
        room = self.height - self.bottom - self.top
        return self.top + room * (1 - value / highest)


def times(first: datetime, last: datetime, period: timedelta) -> list[datetime]:
    """The beginnings of all periods from the first to the last."""
    return [first + n * period for n in range(int((last - first) / period) + 1)]


def describe(axis: Axis, series: Sequence[Series], format: Format) -> str:
    """A chart in words: for each series its lowest and highest value, and when that was."""
    return "; ".join(_describe(axis, each, format) for each in series)


def _describe(axis: Axis, series: Series, format: Format) -> str:
    known = [
        (value, time) for value, time in zip(series.values, axis.times, strict=True) if value is not None
    ]
    if not known:
        return f"{series.name}: no values"
    (lowest, _), (highest, time) = min(known, key=lambda pair: pair[0]), max(known, key=lambda pair: pair[0])
    return f"{series.name}: {format(lowest)} to {format(highest)}, highest at {instant(time, axis.period)}"


def bars(axis: Axis, stacked: Sequence[Series], lines: Sequence[Series], format: Format, label: str) -> Html:
    """Stacked bars with lines above them, with both axes."""
    totals = [sum(series.values[n] or 0 for series in stacked) for n in range(len(axis.times))]
    highest = _round_up(max([*totals, *(v for s in lines for v in s.values if v is not None)], default=0))
    below = [0.0] * len(axis.times)
    drawn = [tag("g", *_stack(axis, series, below, highest), class_=series.style) for series in stacked]
    overlays = [
        tag("path", d=_path(axis, series.values, highest), class_=f"line {series.style}") for series in lines
    ]
    described = f"{label}. {describe(axis, [*stacked, *lines], format)}"
    hover = _hover(axis, [*stacked, *lines], format)
    return _svg(axis, described, _grid(axis, highest, format), *drawn, *overlays, hover)


def curves(axis: Axis, series: Sequence[Series], format: Format, label: str) -> Html:
    """Lines with both axes; the first one is filled."""
    most = max((v for s in series for v in s.values if v is not None), default=0)
    highest = _round_up_duration(most) if format is duration else _round_up(most)
    filled = tag("path", d=_area(axis, series[0].values, highest), class_=f"area {series[0].style}")
    drawn = [tag("path", d=_path(axis, s.values, highest), class_=f"line {s.style}") for s in series]
    described = f"{label}. {describe(axis, series, format)}"
    return _svg(axis, described, _grid(axis, highest, format), filled, *drawn, _hover(axis, series, format))


def heat(axis: Axis, rows: Sequence[Series], format: Format, label: str, row_height: float = 20) -> Html:
    """A line of cells for each series, the stronger the colour the more, up to the highest value of all."""
    highest = max((v for series in rows for v in series.values if v is not None), default=0) or 1.0
    cells = [
        tag(
            "rect",
            tag("title", f"{series.name}, {instant(time, axis.period)}: {format(value)}"),
            x=axis.x(index),
            y=row * row_height,
            width=max(axis.interval - 0.6, 0.4),
            height=row_height - 3,
            rx=1.5,
            class_="cell",
            fill_opacity=0.06 + 0.94 * value / highest,
        )
        for row, series in enumerate(rows)
        for index, (time, value) in enumerate(zip(axis.times, series.values, strict=True))
        if value is not None
    ]
    names = [
        tag(
            "text",
            _shorten(series.name),
            tag("title", series.name),
            x=axis.left - 8,
            y=row * row_height + row_height / 2 + 2.5,
            class_="name",
            text_anchor="end",
        )
        for row, series in enumerate(rows)
    ]
    return _svg(axis, f"{label}. {describe(axis, rows, format)}", *cells, *names, *_time_axis(axis))


def share_bar(parts: Sequence[tuple[float, str]], label: str) -> Html:
    """One bar of parts, each a share of the whole, with its class."""
    drawn, left = [], 0.0
    for share, style in parts:
        drawn.append(tag("rect", x=100 * left, y=0, width=100 * share, height=8, class_=style))
        left += share
    return tag(
        "svg",
        *drawn,
        viewBox="0 0 100 8",
        preserveAspectRatio="none",
        class_="bar",
        role="img",
        aria_label=label,
    )


def sparkline(series: Sequence[Series], label: str, width: float = 168, height: float = 34) -> Html:
    """Small curves without axes, on one scale; the first one is filled."""
    length = max((len(each.values) for each in series), default=0)
    highest = max((value for each in series for value in each.values if value is not None), default=0) or 1.0
    start = datetime.min
    axis = Axis([start] * length, timedelta(minutes=1), width, height, left=0, bottom=2, top=3)
    drawn = (
        [tag("path", d=_area(axis, series[0].values, highest), class_=f"area {series[0].style}")]
        if series
        else []
    )
    drawn += [
        tag("path", d=_path(axis, each.values, highest), class_=f"line {each.style}") for each in series
    ]
    box = f"0 0 {width:.0f} {height:.0f}"
    return tag(
        "svg", *drawn, viewBox=box, class_="spark", role="img", aria_label=label, preserveAspectRatio="none"
    )


def _stack(axis: Axis, series: Series, below: list[float], highest: float) -> list[Html]:
    drawn = []
    for index, value in enumerate(series.values):
        if value:
            bottom, below[index] = below[index], below[index] + value
            y = axis.y(below[index], highest)
            drawn.append(
                tag(
                    "rect",
                    x=axis.x(index) + axis.interval * 0.08,
                    y=y,
                    width=max(axis.interval * 0.84, 0.5),
                    height=max(axis.y(bottom, highest) - y, 0.75),
                )
            )
    return drawn


def _runs(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """The values without gaps: each run is drawn by itself."""
    runs: list[list[tuple[int, float]]] = [[]]
    for index, value in enumerate(values):
        if value is not None:
            runs[-1].append((index, value))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _path(axis: Axis, values: Sequence[float | None], highest: float) -> str:
    return " ".join(_curve(axis, run, highest) for run in _runs(values))


def _curve(axis: Axis, run: list[tuple[int, float]], highest: float) -> str:
    corners = [
        f"{axis.x(index) + axis.interval / 2:.1f} {axis.y(value, highest):.1f}" for index, value in run
    ]
    return "M" + "L".join(corners) + ("m-5 0h10" if len(corners) == 1 else "")


def _area(axis: Axis, values: Sequence[float | None], highest: float) -> str:
    ground = axis.y(0, highest)
    shapes = []
    for run in _runs(values):
        first, last = axis.x(run[0][0]) + axis.interval / 2, axis.x(run[-1][0]) + axis.interval / 2
        shapes.append(f"{_curve(axis, run, highest)}L{last:.1f} {ground:.1f}L{first:.1f} {ground:.1f}Z")
    return " ".join(shapes)


def _hover(axis: Axis, series: Sequence[Series], format: Format) -> Html:
    """Invisible columns with the values as tooltips."""
    columns = []
    for index, time in enumerate(axis.times):
        values = [f"{s.name} {format(v)}" for s in series if (v := s.values[index]) is not None]
        columns.append(
            tag(
                "rect",
                # In UTC. A script on the page may write the time in the zone of the reader.
                tag(
                    "title",
                    f"{instant(time, axis.period)}\n" + "\n".join(values),
                    data_time=None if axis.period >= timedelta(days=1) else time.isoformat(),
                ),
                x=axis.x(index),
                y=0,
                width=axis.interval,
                height=axis.height - axis.bottom,
            )
        )
    return tag("g", *columns, class_="hover")


def _grid(axis: Axis, highest: float, format: Format) -> Html:
    lines: list[Html] = []
    for part in (0.0, 0.5, 1.0):
        y = axis.y(part * highest, highest)
        lines.append(tag("line", x1=axis.left, x2=axis.width, y1=y, y2=y, class_="grid"))
        label = format(part * highest) if part else "0"
        lines.append(tag("text", label, x=axis.left - 6, y=y + 3.5, text_anchor="end"))
    return join(*lines, *_time_axis(axis))


def _time_axis(axis: Axis) -> list[Html]:
    room = max(1, int((axis.width - axis.left) / 76))
    minutes = axis.period / timedelta(minutes=1)
    tick = next((t for t in _TICKS if t >= minutes and len(axis.times) * minutes / t <= room), _TICKS[-1])
    labels = []
    for index, time in enumerate(axis.times):
        if int(time.timestamp() // 60) % tick == 0 and axis.x(index) + 30 < axis.width:
            whole_day = time.hour == time.minute == 0 or tick >= 1440
            text = f"{time.day} {time:%b}" if whole_day else f"{time:%H:%M}"
            style = "day" if whole_day else None
            # A script on the page may write the time in the zone of the reader.
            at = None if tick >= 1440 else time.isoformat()
            labels.append(tag("text", text, x=axis.x(index), y=axis.height - 5, class_=style, data_time=at))
    return labels


def _svg(axis: Axis, label: str, *children: object) -> Html:
    box = f"0 0 {axis.width:.0f} {axis.height:.0f}"
    return tag("svg", *children, viewBox=box, role="img", aria_label=label)


def _round_up(value: float) -> float:
    """The next round number: 1, 2, 2.5 or 5 with zeros."""
    if value <= 0:
        return 1.0
    size = 10.0 ** ceil(log10(value) - 1)
    return next((n * size for n in (1, 2, 2.5, 5) if n * size >= value), 10 * size)


def _round_up_duration(seconds: float) -> float:
    """The next duration that is round, and whose half is: 30 s, 4 min, 1 h."""
    return (
        next((float(each) for each in _DURATIONS if each >= seconds), seconds)
        if seconds > 1
        else _round_up(seconds)
    )


def _shorten(name: str) -> str:
    return name if len(name) <= 18 else name[:17] + "…"
