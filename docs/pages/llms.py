"""llms.txt: all pages of the site with their first sentence, for language models and other programs that read it."""

import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["describe_site", "find_pages"]

_HEAD = """\
# trioboss

> A Postgres job queue for Python programs with structured concurrency (trio). Jobs are sent in the caller's own
> transaction, run at least once, settle exactly once, and keep the order of commit for each key if asked to.

The source of each page is Markdown: replace `.html` by `.md.txt`, below `_sources/`. Parts of the reference are
generated from the code, and only in the pages.
"""
_SKIPPED = ("_extra", "_generated", "snippets", "drawings", "pages")
_TOCTREE = re.compile(r"^```\{toctree\}\n((?::[^\n]*\n)*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def find_pages(root: Path) -> list[str]:
    """The pages of the site, by their path below docs/."""
    pages = (page.relative_to(root) for page in root.rglob("*.md"))
    return sorted(page.as_posix() for page in pages if page.parts[0] not in _SKIPPED)


def _toctrees(file: Path) -> Iterator[tuple[str, list[Path]]]:
    """The lists of pages in a page: the caption of each, and the files in their order."""
    for options, entries in _TOCTREE.findall(file.read_text("utf-8")):
        caption = re.search(r":caption: (.*)", options)
        found = [sorted(file.parent.glob(f"{entry}.md")) for entry in entries.split()]
        yield caption[1] if caption else "", [page for pages in found for page in pages]


def _walk(file: Path) -> Iterator[Path]:
    """A page, and those below it, in the order of the site."""
    yield file
    for _, pages in _toctrees(file):
        for page in pages:
            yield from _walk(page)


def describe_site(root: Path) -> str:
    """The text of llms.txt, with the sections and the order of the site. A page that it does not have is an error."""
    sections = {"": [root / "index.md"]}
    sections |= {
        caption: [page for each in pages for page in _walk(each)]
        for caption, pages in _toctrees(root / "index.md")
    }
    lines = [_HEAD]
    left = set(find_pages(root))
    for caption, files in sections.items():
        pages = [file.resolve().relative_to(root.resolve()).as_posix() for file in files]
        lines += [f"## {caption}\n"] if caption else []
        lines += [*(_describe(root, page) for page in pages), ""]
        left -= set(pages)
    if left:
        raise LookupError(f"no table of contents has {', '.join(sorted(left))}")
    return "\n".join(lines)


def _describe(root: Path, page: str) -> str:
    text = (root / page).read_text("utf-8")
    if included := re.match(r"```\{include\} (\S+)", text):
        text = ((root / page).parent / included[1]).read_text("utf-8")
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    paragraphs = re.split(r"\n\s*\n", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))
    prose = [each for each in paragraphs if re.match(r"\s*[`*\[]?[A-Za-z]", each)]
    first = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(prose[0].split())) if prose else ""
    sentence = re.split(r"(?<=\.)\s", first)[0].rstrip(":")
    link = page.removesuffix(".md") + ".html"
    return f"- [{title[1] if title else page}]({link})" + (f": {sentence}" if sentence else "")
