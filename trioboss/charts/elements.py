"""HTML and SVG as values. All text is escaped, so that no text of a job can become markup."""

from html import escape

__all__ = ["Html", "join", "raw", "tag"]


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def raw(markup: str) -> Html:
    """Take our own text for markup."""
    return Html(markup)


def join(*parts: object) -> Html:
    """Parts one after the other; those that are no markup are escaped, None is nothing."""
    return Html("".join(_markup(part) for part in parts))


def tag(name: str, *children: object, **attributes: object) -> Html:
    """An element. `class_` is class, `stroke_width` is stroke-width; an attribute that is None is left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_number(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>{join(*children)}</{name}>")


def _markup(part: object) -> str:
    if part is None:
        return ""
    return str(part) if isinstance(part, Html) else escape(str(part), quote=True)


def _number(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
