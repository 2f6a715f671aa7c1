"""Parts of pages that are generated from the code, as Markdown. Sphinx includes them from docs/_generated.

benchmarks  the tables of the benchmarks, from published runs: they are in the page itself
runs        reads published runs
commands    the commands of `trioboss`, from their parser
errors      the tree of errors
examples    the programs in examples/
events      the events, with their levels in the log
jobs        the fields of a job, and what a handler does with it
links       links in Markdown, and the headings to which they lead
llms        llms.txt: the pages of the site, for programs that read it
options     the options of queues, jobs and workers
sessions    the settings of database sessions
api         the methods of Boss and SyncBoss by subject, names of types, and how docstrings refer to them
docstrings  reads the texts below attributes and names
"""

from collections.abc import Callable
from pathlib import Path

from docs.pages.api import describe_aliases, describe_boss, describe_sync_boss, describe_types
from docs.pages.commands import describe_commands
from docs.pages.errors import describe_errors
from docs.pages.events import describe_events
from docs.pages.examples import describe_examples
from docs.pages.jobs import describe_job_fields, describe_running_job
from docs.pages.options import describe_queue_options, describe_send_options, describe_work_options
from docs.pages.sessions import describe_sessions

__all__ = ["PAGES", "write_pages"]

PAGES: dict[str, Callable[[], str]] = {
    "aliases": describe_aliases,
    "boss": describe_boss,
    "commands": describe_commands,
    "errors": describe_errors,
    "events": describe_events,
    "examples": describe_examples,
    "job_fields": describe_job_fields,
    "queue_options": describe_queue_options,
    "running_job": describe_running_job,
    "send_options": describe_send_options,
    "sessions": describe_sessions,
    "sync_boss": describe_sync_boss,
    "types": describe_types,
    "work_options": describe_work_options,
}
"""By the name of the file: the function that returns its text."""


def write_pages(folder: Path) -> None:
    """Write all of them. A file that is up to date is left alone, so that Sphinx does not read its page again."""
    folder.mkdir(exist_ok=True)
    for name, describe in PAGES.items():
        file, text = folder / f"{name}.md", describe()
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")
