"""Boxes, arrows and text as SVG, in a theme for light pages and one for dark pages."""

from html import escape

import attrs

__all__ = ["DARK", "LIGHT", "THEMES", "Canvas", "Theme", "estimate_width"]

_FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
_CODE = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"


@attrs.frozen
class Theme:
    """The colours of a drawing. The background is that of the page."""

    name: str
    text: str
    faint: str
    line: str
    box: str
    accent: str
    good: str
    bad: str


LIGHT = Theme("light", "#1f2328", "#5b6570", "#6a737d", "#f4f6f8", "#dbeafe", "#dcfce7", "#fee2e2")
DARK = Theme("dark", "#e6edf3", "#9aa4af", "#8b949e", "#22272e", "#1e3a5f", "#14432a", "#5a1e1e")
THEMES = (LIGHT, DARK)


def estimate_width(text: str, size: float, *, code: bool = False) -> float:
    """About how wide a line of text is: the fonts are those of the reader."""
    return len(text) * size * (0.6 if code else 0.54)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


@attrs.define
class Canvas:
    """A drawing under way. Coordinates are pixels, from the upper left corner."""

    width: float
    height: float
    theme: Theme
    title: str
    """For readers who do not see it."""
    _parts: list[str] = attrs.field(factory=list, init=False)

    def box(
        self, x: float, y: float, width: float, height: float, *, fill: str = "", dashed: bool = False
    ) -> None:
        """A box with round corners; ``x`` and ``y`` are its upper left corner."""
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        self._parts.append(
            f'<rect x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}" rx="6" '
            f'fill="{fill or self.theme.box}" stroke="{self.theme.line}"{dashes}/>'
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 13,
        anchor: str = "middle",
        faint: bool = False,
        bold: bool = False,
        code: bool = False,
        halo: bool = False,
    ) -> None:
        """A line of text whose middle is at ``y``. With ``halo`` it covers what is behind it."""
        colour = self.theme.faint if faint else self.theme.text
        weight = ' font-weight="600"' if bold else ""
        font = f' font-family="{_CODE}"' if code else ""
        if halo:
            # An opaque box: the colour of the page is not known here, so the arrow is interrupted by the box colour.
            wide = estimate_width(text, size, code=code) + 6
            left = {"middle": x - wide / 2, "start": x - 3, "end": x - wide + 3}[anchor]
            self._parts.append(
                f'<rect x="{_number(left)}" y="{_number(y - size * 0.7)}" width="{_number(wide)}" '
                f'height="{_number(size * 1.4)}" rx="3" fill="{self.theme.box}" fill-opacity="0.92"/>'
            )
        self._parts.append(
            f'<text x="{_number(x)}" y="{_number(y)}" font-size="{_number(size)}" text-anchor="{anchor}" '
            f'dominant-baseline="central" fill="{colour}"{weight}{font}>{escape(text)}</text>'
        )

    def line(
        self, x1: float, y1: float, x2: float, y2: float, *, arrow: bool = False, dashed: bool = False
    ) -> None:
        """A straight line."""
        self.path(f"M {_number(x1)} {_number(y1)} L {_number(x2)} {_number(y2)}", arrow=arrow, dashed=dashed)

    def path(self, commands: str, *, arrow: bool = True, dashed: bool = False) -> None:
        """A line along the commands of an SVG path."""
        end = ' marker-end="url(#arrow)"' if arrow else ""
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        self._parts.append(
            f'<path d="{commands}" fill="none" stroke="{self.theme.line}" stroke-width="1.4"{dashes}{end}/>'
        )

    def cross(self, x: float, y: float, size: float) -> None:
        """A cross over something that is refused."""
        for sign in (1, -1):
            self.line(x - size, y - sign * size, x + size, y + sign * size)

    def render(self) -> str:
        """The drawing as text."""
        size = f"{_number(self.width)} {_number(self.height)}"
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" width="{_number(self.width)}" '
            f'height="{_number(self.height)}" role="img" font-family="{_FONT}">'
        )
        marker = (
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path d="M 0 0 L 8 4 L 0 8 z" fill="{self.theme.line}"/></marker></defs>'
        )
        return "\n".join([head, f"<title>{escape(self.title)}</title>", marker, *self._parts, "</svg>", ""])
