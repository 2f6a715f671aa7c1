"""Renders templates: whole pages, and their live parts by themselves."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader

from trioboss._version import __version__
from trioboss.dashboard import formatting, payloads

__all__ = ["decode_queue", "make_address", "own_path", "queue_address", "render_page", "render_parts"]

_LIVE = "live_"  # a block of this name is a live part; the element around it has the same id


def make_address(base: str, *parts: object, **query: object) -> str:
    """An address of the dashboard: make_address(base, "queues", name, after=…)."""
    path = "/".join(quote(str(part), safe="") for part in parts)
    given = {name: value for name, value in query.items() if value is not None}
    return f"{base}/{path}" + (f"?{urlencode(given)}" if given else "")


def queue_address(base: str, queue: str, *parts: object, **query: object) -> str:
    """An address below that of a queue. Names may contain slashes, or be dots only: neither would stay as it is."""
    name = queue.replace("/", "~")
    return make_address(base, "queues", f"!{name}" if not name.strip(".") else name, *parts, **query)


def decode_queue(part: str) -> str:
    """The name of the queue in an address."""
    return part.removeprefix("!").replace("~", "/")


def own_path(path: str, default: str) -> str:
    """The path, if it is one of the dashboard: a form or a link must not lead elsewhere."""
    is_own = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    return path.split("#")[0] if is_own else default


def _make_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("trioboss.dashboard"),
        autoescape=True,
        finalize=formatting.finalize,
        lstrip_blocks=True,  # but no trim_blocks: it would join the words before and after a line that ends in a block
    )
    environment.filters.update(formatting.FILTERS | payloads.FILTERS)
    environment.globals.update(version=__version__)
    return environment


_ENVIRONMENT = _make_environment()


def _complete(context: Mapping[str, Any]) -> dict[str, Any]:
    base = context["base"]
    return {
        **context,
        "to": lambda *parts, **query: make_address(base, *parts, **query),
        "to_queue": lambda *parts, **query: queue_address(base, *parts, **query),
    }


def render_page(template: str, context: Mapping[str, Any]) -> str:
    """A whole page."""
    return _ENVIRONMENT.get_template(template).render(_complete(context))


def render_parts(template: str, context: Mapping[str, Any]) -> dict[str, str]:
    """The live parts of a page, by the ids of their elements."""
    found = _ENVIRONMENT.get_template(template)
    within = found.new_context(_complete(context))
    return {
        name.replace("_", "-"): "".join(block(within))
        for name, block in found.blocks.items()
        if name.startswith(_LIVE)
    }
