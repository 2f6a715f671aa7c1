"""Percentile curves and bars as SVG, without a plotting library."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import TypeAlias

import attrs

__all__ = ["Bar", "Bars", "Curve", "Curves", "Plot", "draw"]

_WIDTH = 960
_LEFT, _TOP, _BOTTOM = 64, 36, 44
_PLOT_HEIGHT = 260
_BAR_HEIGHT, _BAR_GAP = 16, 8
_LETTER = 6.7  # pixels of an average letter, rounded up
_COLOURS = (
    "#3366aa",
    "#cc5533",
    "#339966",
    "#886699",
    "#bb8822",
    "#557788",
    "#993355",
    "#66aa22",
    "#222222",
    "#999999",
    "#00a0a0",
    "#dd77aa",
    "#774400",
)
_Scale: TypeAlias = Callable[[float], float]  # from a value to a pixel
_STYLE = "font-family='system-ui,sans-serif' font-size='12'"


@attrs.frozen
class Curve:
    """One line of a percentile plot: points of a share of the samples and the value they do not exceed."""

    name: str
    points: Sequence[tuple[float, float]]


@attrs.frozen
class Curves:
    """Percentile curves. Each step to the right is one more nine: 90 %, 99 %, 99.9 %."""

    title: str
    unit: str
    curves: Sequence[Curve]

    def height(self) -> int:
        """Return the height in pixels."""
        return _TOP + max(_PLOT_HEIGHT, len(self.curves) * 18) + _BOTTOM

    def render(self, top: float) -> Iterator[str]:
        """Yield the SVG elements, shifted down by `top`."""
        right = _WIDTH - _label_width(curve.name for curve in self.curves) - 36
        points = [point for curve in self.curves for point in curve.points]
        nines = max((_nines(share) for share, _ in points if share < 1), default=1.0) + 0.3
        values = [value for _, value in points if value > 0]
        low, high = _decades(min(values, default=1.0), max(values, default=1.0))

        def x(share: float) -> float:
            return _LEFT + min(_nines(share), nines) / nines * (right - _LEFT)

        def y(value: float) -> float:
            place = (math.log10(max(value, 10**low)) - low) / (high - low)
            return top + _TOP + (1 - place) * _PLOT_HEIGHT

        yield _text(_LEFT, top + 20, f"{self.title} ({self.unit})", weight="bold")
        yield from self._grid(x, y, right, nines, low, high)
        for number, curve in enumerate(self.curves):
            colour = _COLOURS[number % len(_COLOURS)]
            path = " ".join(f"{x(share):.1f},{y(value):.1f}" for share, value in curve.points)
            dashes = " stroke-dasharray='6 3'" if number >= len(_COLOURS) else ""
            width = 3.2 if curve.name.startswith("trioboss") else 1.6
            yield f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='{width}'{dashes}/>"
            line = top + _TOP + 14 + number * 18
            yield f"<rect x='{right + 12:.0f}' y='{line - 9:.0f}' width='10' height='10' fill='{colour}'/>"
            yield _text(right + 28, line, curve.name)

    def _grid(self, x: _Scale, y: _Scale, right: float, nines: float, low: int, high: int) -> Iterator[str]:
        for share in (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999):
            if _nines(share) <= nines:
                yield _line(x(share), y(10**low), x(share), y(10**high))
                yield _text(x(share), y(10**low) + 18, f"{share * 100:.10g} %", anchor="middle")
        for value in _log_ticks(low, high):
            yield _line(x(0.0), y(value), right, y(value))
            yield _text(_LEFT - 8, y(value) + 4, f"{value:g}", anchor="end")


@attrs.frozen
class Bar:
    """A measurement and, if it was repeated, its range."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


@attrs.frozen
class Bars:
    """Bars that start at zero."""

    title: str
    unit: str
    bars: Sequence[Bar]

    def height(self) -> int:
        """Return the height in pixels."""
        return _TOP + len(self.bars) * (_BAR_HEIGHT + _BAR_GAP) + 16

    def render(self, top: float) -> Iterator[str]:
        """Yield the SVG elements, shifted down by `top`."""
        longest = max((bar.high or bar.value for bar in self.bars), default=1.0) or 1.0
        left = _label_width(bar.name for bar in self.bars) + 20
        scale = (_WIDTH - left - 90) / longest
        yield _text(12, top + 20, f"{self.title} ({self.unit})", weight="bold")
        for number, bar in enumerate(self.bars):
            y = top + _TOP + number * (_BAR_HEIGHT + _BAR_GAP)
            middle = y + _BAR_HEIGHT / 2
            colour = _COLOURS[0] if bar.name.startswith("trioboss") else _COLOURS[5]
            yield _text(left - 8, middle + 4, bar.name, anchor="end")
            width = max(bar.value * scale, 0.5)
            yield f"<rect x='{left:.0f}' y='{y:.1f}' width='{width:.1f}' height='{_BAR_HEIGHT}' fill='{colour}'/>"
            if bar.low is not None and bar.high is not None and bar.high > bar.low:
                ends = left + bar.low * scale, left + bar.high * scale
                yield _line(ends[0], middle, ends[1], middle, "#000000")
            end = left + max(bar.value, bar.high or 0.0) * scale
            yield _text(end + 6, middle + 4, f"{bar.value:,.4g}" if bar.value < 1000 else f"{bar.value:,.0f}")


Plot = Curves | Bars


def draw(plots: Sequence[Plot]) -> str:
    """Return one SVG with the plots below each other."""
    parts: list[str] = []
    top = 0
    for plot in plots:
        parts += plot.render(top)
        top += plot.height()
    size = f"width='{_WIDTH}' height='{top}' viewBox='0 0 {_WIDTH} {top}'"
    head = f"<svg xmlns='http://www.w3.org/2000/svg' {size} {_STYLE}>"
    background = f"<rect width='{_WIDTH}' height='{top}' fill='white'/>"
    return "\n".join([head, background, *parts, "</svg>", ""])


def _label_width(names: Iterable[str]) -> float:
    """Return the pixels of the longest of these names, at most half of the plot's width."""
    return min(max((len(name) * _LETTER for name in names), default=0.0), _WIDTH / 2)


def _nines(share: float) -> float:
    """Return how many nines a share has: 0.9 has one, 0.99 has two."""
    return -math.log10(max(1 - share, 1e-9))


def _decades(low: float, high: float) -> tuple[int, int]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return first, max(last, first + 1)


def _log_ticks(low: int, high: int) -> Iterator[float]:
    for decade in range(low, high + 1):
        for digit in (1, 2, 5) if high - low <= 3 else (1,):
            value = digit * 10.0**decade
            if value <= 10**high:
                yield value


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = "#dddddd") -> str:
    return f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{colour}'/>"


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> str:
    place = f"x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' font-weight='{weight}'"
    return f"<text {place}>{escape(text)}</text>"
