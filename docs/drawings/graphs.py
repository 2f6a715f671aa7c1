"""States and the arrows between them. The positions are given by the caller, the arrows come from a table."""

import math
from collections.abc import Iterable, Mapping

import attrs

from docs.drawings.svg import Canvas

__all__ = ["Arrow", "Bend", "Graph", "Node"]

_WIDTH, _HEIGHT = 150.0, 40.0


@attrs.frozen
class Node:
    """A state: its name, the middle of its box, and a second line."""

    name: str
    x: float
    y: float
    note: str = ""
    kind: str = "box"
    """The colour of the theme that fills it."""
    dashed: bool = False


@attrs.frozen
class Bend:
    """How an arrow leaves the straight line: by how many pixels to its right, and where on it its label is."""

    by: float = 0.0
    label_at: float = 0.5
    label_by: tuple[float, float] = (0.0, 0.0)


@attrs.frozen
class Arrow:
    """A transition; several events with the same effect are one arrow."""

    source: str
    target: str
    label: str


@attrs.frozen
class Graph:
    """Nodes and arrows. An arrow to a node that has no place is an error: a new state has to be drawn."""

    nodes: Iterable[Node]
    arrows: Iterable[Arrow]
    bends: Mapping[tuple[str, str], Bend] = attrs.field(factory=dict)

    def draw(self, canvas: Canvas) -> None:
        """Draw the arrows, then the boxes over their ends."""
        places = {node.name: node for node in self.nodes}
        labels = []
        for arrow in self.arrows:
            bend = self.bends.get((arrow.source, arrow.target), Bend())
            labels.append(
                (_draw_arrow(canvas, places[arrow.source], places[arrow.target], bend), arrow.label)
            )
        for node in places.values():
            fill = getattr(canvas.theme, node.kind)
            canvas.box(
                node.x - _WIDTH / 2, node.y - _HEIGHT / 2, _WIDTH, _HEIGHT, fill=fill, dashed=node.dashed
            )
            shift = 7.0 if node.note else 0.0
            canvas.text(node.x, node.y - shift, node.name, bold=True)
            if node.note:
                canvas.text(node.x, node.y + 9, node.note, size=10.5, faint=True)
        for (x, y), label in labels:
            canvas.text(x, y, label, size=11.5, halo=True)


def _draw_arrow(canvas: Canvas, source: Node, target: Node, bend: Bend) -> tuple[float, float]:
    """Draw a curve from box to box; return the place of its label."""
    dx, dy = target.x - source.x, target.y - source.y
    length = math.hypot(dx, dy)
    # The control point of a quadratic curve, beside the middle of the straight line.
    cx = (source.x + target.x) / 2 - dy / length * bend.by * 2
    cy = (source.y + target.y) / 2 + dx / length * bend.by * 2
    x1, y1 = _leave(source, cx, cy)
    x2, y2 = _leave(target, cx, cy)
    canvas.path(f"M {x1:.1f} {y1:.1f} Q {cx:.1f} {cy:.1f} {x2:.1f} {y2:.1f}")
    t = bend.label_at
    x = (1 - t) ** 2 * x1 + 2 * t * (1 - t) * cx + t * t * x2
    y = (1 - t) ** 2 * y1 + 2 * t * (1 - t) * cy + t * t * y2
    return x + bend.label_by[0], y + bend.label_by[1]


def _leave(node: Node, x: float, y: float) -> tuple[float, float]:
    """Where a line from the middle of a box towards a point crosses its border, with a gap."""
    dx, dy = x - node.x, y - node.y
    scale = min(
        (_WIDTH / 2 + 3) / abs(dx) if dx else math.inf, (_HEIGHT / 2 + 3) / abs(dy) if dy else math.inf
    )
    return node.x + dx * scale, node.y + dy * scale
