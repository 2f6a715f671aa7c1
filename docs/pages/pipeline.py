"""The arguments of `trioboss pipeline`, from the parsers of its jobs: `python -m docs.pages.pipeline` writes them.

The parsers need PySpark, which a build of the site does without. So this part of its page is committed, and
tests/docs/test_pipeline.py fails if it is not up to date.
"""

import argparse
from importlib import import_module
from pathlib import Path
from unittest import mock

from docs.pages.commands import describe_command
from trioboss.cli.parser import PIPELINE_JOBS

__all__ = ["PAGE", "describe_jobs", "find_parser"]

PAGE = Path(__file__).parent.parent / "reference" / "pipeline.md"
_BEGIN, _END = "<!-- from the parsers: python -m docs.pages.pipeline -->\n", "<!-- end -->\n"


class _Found(BaseException):
    """Carries a parser out of the function that makes it."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def find_parser(job: str) -> argparse.ArgumentParser:
    """The parser of a job: caught at the moment when it is used."""

    def catch(parser: argparse.ArgumentParser, *_: object) -> None:
        raise _Found(parser)

    main = import_module(f"trioboss.pipeline.jobs.{job}").main
    try:
        with mock.patch.object(argparse.ArgumentParser, "parse_args", catch):
            main([])
    except _Found as found:
        return found.parser
    raise AssertionError(f"{job} parses no arguments")


def describe_jobs() -> str:
    """A section for each job."""
    lines = [line for job in PIPELINE_JOBS for line in describe_command(f"pipeline {job}", find_parser(job))]
    return "\n".join(lines)


def replace_jobs(page: str) -> str:
    """The page with the arguments as they are now."""
    before, _, rest = page.partition(_BEGIN)
    after = rest.partition(_END)[2]
    return f"{before}{_BEGIN}\n{describe_jobs()}\n{_END}{after}"


if __name__ == "__main__":
    PAGE.write_text(replace_jobs(PAGE.read_text("utf-8")), "utf-8")
