"""The published summary of a run: a page of Markdown with what was run, where, and the tables.

The raw JSON of a run has every sample; it is large and stays out of git. A summary has the medians, ranges and ratios.
"""

import re
from collections.abc import Iterator
from typing import Any

from benchmarks.harness.tables import Table

__all__ = ["MAX_LINES", "TooLong", "summarize_run"]

MAX_LINES = 200  # a published file that is longer is not a summary


class TooLong(Exception):
    """The summary of a run has too many lines."""


def summarize_run(content: dict[str, Any]) -> str:
    """Return the summary of a raw file of results."""
    tables = [Table.from_json(table) for table in content["tables"]]
    parts = ["\n".join(_head(content)), *(table.render() for table in tables)]
    text = "\n\n".join(parts) + "\n"
    if (lines := text.count("\n")) > MAX_LINES:
        raise TooLong(f"{lines} lines, and a summary may have {MAX_LINES}: publish fewer measures of the run")
    return text


def _head(content: dict[str, Any]) -> Iterator[str]:
    runs = content["runs"]
    yield f"# {content['command']}, {runs[-1]['at'].partition(' ')[0]}"
    yield ""
    for run in runs:
        commit = f", commit {run['commit']}" if run.get("commit") else ""
        yield f"- run: `{run['command']}` ({run['at']}{commit})"
    environment = content["environment"]
    if machine := environment.get("machine"):
        yield f"- machine: {_machine(machine)}"
    if versions := environment.get("versions"):
        named = (f"{name} {version}" for name, version in versions.items() if name != "commit")
        yield f"- versions: {', '.join(named)}"
    if settings := environment.get("postgres_settings"):
        named = (f"{name} {value}" for name, value in settings.items())
        yield f"- Postgres through {environment['connection']}: {', '.join(named)}"
    if plan := environment.get("plan"):
        yield f"- plan: {', '.join(f'{name} {value}' for name, value in plan.items())}"


def _machine(machine: dict[str, Any]) -> str:
    """Return the class of the machine: no host name, and of the kernel only its version."""
    system = re.sub(r"(\d+\.\d+)\S*", r"\1", machine["system"])
    memory = f"{machine['memory_gb']:.0f} GB"
    load = f"load {machine['load_at_start']:.1f} at the start"
    return f"{machine['cores']} cores ({machine['cpu']}), {memory}, {system}, data on {machine['data_on']}, {load}"
