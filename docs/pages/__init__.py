"""Parts of pages that are generated from the code, as Markdown. Sphinx includes them from docs/_generated.

commands  the commands of `trioboss`, from their parser
"""

from collections.abc import Callable
from pathlib import Path

from docs.pages.commands import describe_commands

__all__ = ["PAGES", "write_pages"]

PAGES: dict[str, Callable[[], str]] = {
    "commands": describe_commands,
}
"""By the name of the file: the function that returns its text."""


def write_pages(folder: Path) -> None:
    """Write all of them. A file that is up to date is left alone, so that Sphinx does not read its page again."""
    folder.mkdir(exist_ok=True)
    for name, describe in PAGES.items():
        file, text = folder / f"{name}.md", describe()
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")
