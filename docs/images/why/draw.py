"""Draws the four pictures of `docs/why.md`, each for a light and a dark page: `python docs/images/why/draw.py`."""

from pathlib import Path

import attrs

FOLDER = Path(__file__).parent
WIDTH, HEIGHT = 720, 230


@attrs.frozen
class Colors:
    """The colours of one scheme."""

    text: str
    line: str
    good: str
    bad: str
    box: str


SCHEMES = {
    "light": Colors("#1b1f24", "#8b949e", "#1a7f37", "#cf222e", "#f6f8fa"),
    "dark": Colors("#e6edf3", "#7d8590", "#3fb950", "#ff7b72", "#21262d"),
}


@attrs.define
class Picture:
    """One picture: horizontal lines of time, boxes on them, and arrows between them."""

    colors: Colors
    title: str
    parts: list[str] = attrs.field(factory=list, init=False)

    def text(self, x: float, y: float, words: str, color: str, anchor: str = "middle") -> None:
        """Write words around a point."""
        self.parts.append(f'<text x="{x}" y="{y}" fill="{color}" text-anchor="{anchor}">{words}</text>')

    def life(self, name: str, y: float, end: float = WIDTH - 20) -> None:
        """The line of time of one participant."""
        self.text(100, y + 5, name, self.colors.text, "end")
        self.parts.append(
            f'<line x1="115" y1="{y}" x2="{end}" y2="{y}" stroke="{self.colors.line}" stroke-width="1.5"/>'
        )

    def box(self, x: float, y: float, words: str, color: str | None = None) -> None:
        """Something that happens at one participant, at one time."""
        width = 16 + 7.4 * len(words)
        self.parts.append(
            f'<rect x="{x - width / 2:.0f}" y="{y - 15}" width="{width:.0f}" height="30" rx="6" '
            f'fill="{self.colors.box}" stroke="{color or self.colors.line}" stroke-width="1.5"/>'
        )
        self.text(x, y + 5, words, color or self.colors.text)

    def arrow(self, x: float, y: float, to_x: float, to_y: float, color: str | None = None) -> None:
        """From one event to another."""
        color = color or self.colors.line
        head = {self.colors.good: "good", self.colors.bad: "bad"}.get(color, "line")
        self.parts.append(
            f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}" stroke="{color}" stroke-width="1.5" '
            f'marker-end="url(#{head})"/>'
        )

    def cross(self, x: float, y: float) -> None:
        """The death of a process."""
        for dx in (-9, 9):
            self.parts.append(
                f'<line x1="{x - dx}" y1="{y - 9}" x2="{x + dx}" y2="{y + 9}" stroke="{self.colors.bad}" '
                'stroke-width="3.5"/>'
            )

    def svg(self) -> str:
        """The picture as a document."""
        heads = "".join(
            f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
            f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{color}"/></marker>'
            for name, color in (
                ("line", self.colors.line),
                ("good", self.colors.good),
                ("bad", self.colors.bad),
            )
        )
        body = "\n".join(self.parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'font-family="system-ui, sans-serif" font-size="14">\n<title>{self.title}</title>\n'
            f"<defs>{heads}</defs>\n{body}\n</svg>\n"
        )


def draw_two_systems(colors: Colors) -> Picture:
    """A commit, then a message."""
    picture = Picture(colors, "The order is committed, then a message is sent to a broker")
    for name, y in (("shop", 40), ("Postgres", 90), ("broker", 140), ("worker", 190)):
        picture.life(name, y)
    picture.box(200, 40, "take an order")
    picture.arrow(215, 56, 265, 73, colors.good)
    picture.box(280, 90, "commit", colors.good)
    picture.box(420, 40, "send a message")
    picture.arrow(435, 56, 455, 123, colors.good)
    picture.box(465, 140, "message", colors.good)
    picture.arrow(495, 157, 540, 174, colors.good)
    picture.box(590, 190, "send the e-mail", colors.good)
    return picture


def draw_lost(colors: Colors) -> Picture:
    """The process dies after the commit."""
    picture = Picture(colors, "The process dies after the commit: the message is never sent")
    picture.life("shop", 40, 380)
    for name, y in (("Postgres", 90), ("broker", 140), ("worker", 190)):
        picture.life(name, y)
    picture.box(200, 40, "take an order")
    picture.arrow(215, 56, 265, 73, colors.good)
    picture.box(280, 90, "commit", colors.good)
    picture.cross(380, 40)
    picture.text(400, 45, "the process dies", colors.bad, "start")
    picture.text(500, 135, "no message", colors.bad)
    picture.text(590, 185, "no e-mail, no error", colors.bad)
    return picture


def draw_too_early(colors: Colors) -> Picture:
    """The message is sent before a commit that never comes."""
    picture = Picture(colors, "The message is sent first, and the transaction is rolled back")
    for name, y in (("shop", 40), ("Postgres", 90), ("broker", 140), ("worker", 190)):
        picture.life(name, y)
    picture.box(205, 40, "send a message")
    picture.arrow(215, 56, 240, 123)
    picture.box(255, 140, "message")
    picture.arrow(285, 157, 340, 174, colors.bad)
    picture.box(420, 190, "e-mail for no order", colors.bad)
    picture.box(430, 40, "write the order")
    picture.arrow(445, 56, 510, 73, colors.bad)
    picture.box(540, 90, "roll back", colors.bad)
    return picture


def draw_one_commit(colors: Colors) -> Picture:
    """The order and the job are one commit."""
    picture = Picture(colors, "The order and the job are one commit, which notifies a worker")
    for name, y in (("shop", 50), ("Postgres", 115), ("worker", 180)):
        picture.life(name, y)
    picture.box(230, 50, "take an order, send a job")
    picture.arrow(250, 66, 310, 98, colors.good)
    picture.box(370, 115, "commit: order + job", colors.good)
    picture.arrow(445, 132, 500, 164, colors.good)
    picture.text(500, 150, "notification", colors.text, "start")
    picture.box(580, 180, "send the e-mail", colors.good)
    return picture


PICTURES = {
    "1-two-systems": draw_two_systems,
    "2-lost": draw_lost,
    "3-too-early": draw_too_early,
    "4-one-commit": draw_one_commit,
}


def draw_all() -> dict[str, str]:
    """All files, by name."""
    return {
        f"{name}-{scheme}.svg": draw(colors).svg()
        for name, draw in PICTURES.items()
        for scheme, colors in SCHEMES.items()
    }


if __name__ == "__main__":
    for name, text in draw_all().items():
        (FOLDER / name).write_text(text, "utf-8")
