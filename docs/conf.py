"""The configuration of Sphinx. The build command is in CONTRIBUTING.md; warnings are errors."""

import inspect
import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Union

import attrs
from docutils.nodes import Element, TextElement
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.autodoc.mock import _MockObject
from sphinx.pycode import ModuleAnalyzer
from sphinx.util import logging
from sphinx.util.typing import stringify_annotation

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # for docs.pages, which is not installed

from docs.pages import write_pages  # noqa: E402
from docs.pages.api import find_aliases, find_types, resolve_name  # noqa: E402
from docs.pages.links import LINK, find_addresses, leads_nowhere  # noqa: E402
from docs.pages.llms import describe_site  # noqa: E402
from trioboss import __version__  # noqa: E402

project = "trioboss"
author = "the trioboss authors"
copyright = f"2026, {author}"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_extra", "_generated", "snippets", "drawings", "pages"]
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4

# Docstrings are reStructuredText. A name in single backticks is a link, and one that leads nowhere is a warning; code
# is in double backticks.
default_role = "py:obj"
nitpicky = True
nitpick_ignore_regex = [
    # Their inventories would have to be fetched, and a build depends on nothing outside of the repository.
    ("py:.*", r"(collections|contextlib|datetime|logging|pathlib|types|uuid)\..+"),
    ("py:.*", r"(opentelemetry|psycopg|pyspark|starlette|trio)\..+"),
    # Type variables.
    ("py:class", r"trioboss\.[\w.]+\.(D|D_co|E|T|MiddlewareT)"),
]
# The extra `docs` does without Spark and its 500 MB.
autodoc_mock_imports = ["adbc_driver_postgresql", "numpy", "pyarrow", "pyspark"]
# Its stand-ins are no types: ``DataFrame | None`` in a signature would be an error.
_MockObject.__or__ = _MockObject.__ror__ = lambda self, other: Union[self, other]  # noqa: UP007
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True

html_theme = "furo"
html_title = f"trioboss {release}"
html_copy_source = True
html_extra_path = ["_extra"]
html_show_sphinx = False
html_theme_options = {
    "source_repository": "https://github.com/trioboss/trioboss/",
    "source_branch": "main",
    "source_directory": "docs/",
}

# Only `-b linkcheck` fetches links of other sites: a build depends on nothing outside of the repository. Not fetched
# are addresses of the reader's own machine, and ours, which are not public yet; links to files of the repository are
# checked below.
linkcheck_ignore = [r"http://127\.0\.0\.1", r"https://github\.com/trioboss/"]
linkcheck_timeout, linkcheck_retries = 30, 3

_BLOB = "https://github.com/trioboss/trioboss/blob/main/"
_logger = logging.getLogger(__name__)

# Files of the repository that are pages of the site, too.
_ALSO_PAGES = {
    name: ROOT / "docs" / name.lower() for name in ("GUARANTEES.md", "SECURITY.md", "CHANGELOG.md")
}


def _link_to_repository(text: str, beside: Path, page: Path, name: str) -> str:
    """Links to files outside of docs/ as addresses of the repository; those that do not exist are warnings.

    ``beside``: the folder to which the links in the text are relative. ``page``: the folder of the page that shows it.
    """

    def rewrite(found: re.Match[str]) -> str:
        begin, path, anchor = found.groups()
        if not path:
            return found[0]
        target, behind = (beside / path).resolve(), "" if anchor is None else f"#{anchor}"
        if target.parent == ROOT:
            target = _ALSO_PAGES.get(target.name, target)
        if target.is_relative_to(ROOT / "docs"):
            return f"{begin}{Path(os.path.relpath(target, page)).as_posix()}{behind}"
        if leads_nowhere(target, anchor):
            _logger.warning("%s: there is no %s%s", name, path, behind, type="myst", subtype="xref_missing")
            return found[0]
        return f"{begin}{_BLOB}{target.relative_to(ROOT).as_posix()}{behind}"

    return LINK.sub(rewrite, text)


def _add_addresses(app: Sphinx, name: str, source: list[str]) -> None:
    """Let linkcheck fetch the addresses in documents of the repository that are no pages of the site, too."""
    if app.builder.name == "linkcheck" and name == "index":
        documents = [
            *ROOT.glob("*.md"),
            *(ROOT / ".github").glob("*.md"),
            ROOT / "observability" / "README.md",
        ]
        found = {each for document in documents for each in find_addresses(document.read_text("utf-8"))}
        source[0] += "".join(f"\n\n<{address}>" for address in sorted(found))


def _on_source_read(app: Sphinx, name: str, source: list[str]) -> None:
    folder = Path(app.env.doc2path(name)).resolve().parent
    source[0] = _link_to_repository(source[0], folder, folder, name)


def _on_include_read(app: Sphinx, path: Path, name: str, source: list[str]) -> None:
    # The pages that include a file of the repository are in docs/. In generated parts links are relative to their page.
    folder = (Path(app.srcdir) / path).resolve().parent
    page = folder if folder.name == "_generated" else ROOT / "docs"
    source[0] = _link_to_repository(source[0], folder, page, name)


# Annotations are evaluated, so that autodoc shows what an alias stands for: a signature of one line becomes five.
_NAMES = {name: getattr(import_module(f"trioboss.{module}"), name) for name, module in find_aliases().items()}
_SPELLED = sorted(
    (
        (stringify_annotation(alias, mode), name)
        for name, alias in _NAMES.items()
        for mode in ("smart", "fully-qualified")
    ),
    key=lambda pair: -len(pair[0]),
)


def _shorten_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Names of types in a signature, and context managers as what they are."""

    def shorten(text: str) -> str:
        for long, short in _SPELLED:
            # An optional alias is written as one union.
            text = text.replace(long, short).replace(long.removesuffix(" | None"), short)
        return text

    if signature and attrs.has(obj):
        # The source of an __init__ that attrs has made names its defaults: attr_dict['dsn'].default.
        defaults = {field.name: repr(field.default) for field in attrs.fields(obj)}
        signature = re.sub(r"attr_dict\['(\w+)'\]\.default", lambda found: defaults[found[1]], signature)
    if returns is not None:
        inner = getattr(obj, "__wrapped__", None)
        if inspect.isasyncgenfunction(inner):
            returns = re.sub(
                r"^[~\w.]*AsyncIterator\[(.*)\]$", r"~contextlib.AbstractAsyncContextManager[\1]", returns
            )
        elif inspect.isgeneratorfunction(inner):
            returns = re.sub(r"^[~\w.]*Iterator\[(.*)\]$", r"~contextlib.AbstractContextManager[\1]", returns)
    return signature and shorten(signature), returns and shorten(returns)


# An alias that is a string names its parts without their modules.
_TYPES = {kind.__name__: f"{kind.__module__}.{kind.__name__}" for kind in find_types()}


def _resolve_reference(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: TextElement
) -> Element | None:
    """A link for a name as programs write it: `boss.send`. A field that has no entry is described with its class."""
    name = node["reftarget"]
    full = resolve_name(name) or _TYPES.get(name) if node["refdomain"] == "py" else None
    for target in (full, full.rpartition(".")[0]) if full else ():
        python = env.domains.python_domain
        if found := python.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, shown):
            return found
    return None


def setup(app: Sphinx) -> None:
    """Called by Sphinx: generates the pages that come from the code, and registers the hooks."""
    write_pages(ROOT / "docs" / "_generated")
    extra = ROOT / "docs" / "_extra"
    extra.mkdir(exist_ok=True)
    (extra / "llms.txt").write_text(describe_site(ROOT / "docs"), "utf-8")
    # Five overloads, for type checkers: the signature below them and the text say the same to people.
    analyzer = ModuleAnalyzer.for_module("trioboss.api.app")
    analyzer.analyze()
    del analyzer.overloads["App.worker"]
    app.connect("autodoc-process-signature", _shorten_signature)
    app.connect("missing-reference", _resolve_reference)
    app.connect("source-read", _on_source_read)
    app.connect("source-read", _add_addresses)
    app.connect("include-read", _on_include_read)
