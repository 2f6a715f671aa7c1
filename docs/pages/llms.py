"""llms.txt: all pages of the site with their first sentence, for language models and other programs that read it."""

import re
from pathlib import Path

__all__ = ["describe_site", "find_pages"]

_HEAD = """\
# trioboss

> A Postgres job queue for Python programs with structured concurrency (trio). Jobs are sent in the caller's own
> transaction, run at least once, settle exactly once, and keep the order of commit for each key if asked to.

The source of each page is Markdown: replace `.html` by `.md.txt`, below `_sources/`. Parts of the reference are
generated from the code, and only in the pages.
"""
_SECTIONS = {
    "Learn": ("index.md", "why.md", "tutorial/"),
    "Guides": ("guides/",),
    "Reference": ("reference/", "guarantees.md", "security.md", "examples.md", "changelog.md"),
    "Internals": ("internals/", "decisions/", "benchmarks.md", "comparison.md"),
}
_SKIPPED = ("_extra", "_generated", "snippets", "drawings", "pages")


def find_pages(root: Path) -> list[str]:
    """The pages of the site, by their path below docs/."""
    pages = (page.relative_to(root) for page in root.rglob("*.md"))
    return sorted(page.as_posix() for page in pages if page.parts[0] not in _SKIPPED)


def describe_site(root: Path) -> str:
    """The text of llms.txt. A page that belongs to no section is an error."""
    pages = find_pages(root)
    lines = [_HEAD]
    for section, prefixes in _SECTIONS.items():
        found = [page for prefix in prefixes for page in pages if page.startswith(prefix)]
        pages = [page for page in pages if page not in found]
        lines.append(f"## {section}\n")
        lines += [_describe(root, page) for page in found]
        lines.append("")
    if pages:
        raise LookupError(f"no section of llms.txt has {', '.join(pages)}")
    return "\n".join(lines)


def _describe(root: Path, page: str) -> str:
    text = (root / page).read_text("utf-8")
    if included := re.match(r"```\{include\} (\S+)", text):
        text = ((root / page).parent / included[1]).read_text("utf-8")
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    paragraphs = re.split(r"\n\s*\n", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))
    prose = [each for each in paragraphs if re.match(r"\s*[`*\[]?[A-Za-z]", each)]
    first = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(prose[0].split())) if prose else ""
    sentence = re.split(r"(?<=[.:])\s", first)[0].rstrip(":")
    link = page.removesuffix(".md") + ".html"
    return f"- [{title[1] if title else page}]({link})" + (f": {sentence}" if sentence else "")
