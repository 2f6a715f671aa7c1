"""The configuration of Sphinx. The build command is in CONTRIBUTING.md; warnings are errors."""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # for docs.pages, which is not installed

from docs.pages import write_pages  # noqa: E402
from trioboss import __version__  # noqa: E402

project = "trioboss"
author = "the trioboss authors"
copyright = f"2026, {author}"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_generated", "snippets", "drawings", "pages"]
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4

# Docstrings are reStructuredText. A name in single backticks is a link where it is one, and code where it is not.
default_role = "py:obj"
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
autodoc_preserve_defaults = True
autodoc_type_aliases = {"JsonInput": "JsonInput", "Json": "Json"}

html_theme = "furo"
html_title = f"trioboss {release}"
html_copy_source = True
html_show_sphinx = False
html_theme_options = {
    "source_repository": "https://github.com/trioboss/trioboss/",
    "source_branch": "main",
    "source_directory": "docs/",
}

# Links of other sites are not fetched: a build depends on nothing outside of the repository.
linkcheck_ignore = [r"https?://"]

_BLOB = "https://github.com/trioboss/trioboss/blob/main/"
_LINK = re.compile(r"(\]\()(?!https?:|#|mailto:)([^)#\s]+)")
_logger = logging.getLogger(__name__)


def _link_to_repository(text: str, beside: Path, name: str) -> str:
    """Links to files outside of docs/ as addresses of the repository; those that do not exist are warnings."""

    def rewrite(found: re.Match[str]) -> str:
        target = (beside / found[2]).resolve()
        if target.is_relative_to(ROOT / "docs"):
            return found[0]
        if not target.exists():
            _logger.warning("%s: there is no file %s", name, found[2], type="myst", subtype="xref_missing")
            return found[0]
        return f"{found[1]}{_BLOB}{target.relative_to(ROOT).as_posix()}"

    return _LINK.sub(rewrite, text)


def _on_source_read(app: Sphinx, name: str, source: list[str]) -> None:
    source[0] = _link_to_repository(source[0], Path(app.env.doc2path(name)).parent, name)


def _on_include_read(app: Sphinx, path: Path, name: str, source: list[str]) -> None:
    source[0] = _link_to_repository(source[0], (Path(app.srcdir) / path).resolve().parent, name)


def setup(app: Sphinx) -> None:
    """Called by Sphinx: generates the pages that come from the code, and registers the hooks."""
    write_pages(ROOT / "docs" / "_generated")
    app.connect("source-read", _on_source_read)
    app.connect("include-read", _on_include_read)
