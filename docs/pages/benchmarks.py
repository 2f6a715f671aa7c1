"""The tables of docs/benchmarks.md, from the published runs: `python -m docs.pages.benchmarks` writes them.

They are in the page itself, because GitHub shows it, too. tests/docs/test_benchmarks.py fails if one is not that of the
newest run.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from docs.pages.runs import Run, Table, find_run, read_runs

__all__ = ["PAGE", "TABLES", "replace_tables"]

PAGE = Path(__file__).parent.parent / "benchmarks.md"
_REGION = re.compile(r"(<!-- from the runs: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


# -- Markdown


def _path(run: Run) -> str:
    return f"../benchmarks/results/published/{run.name}.md"


def _link(run: Run, text: str) -> str:
    return f"[{text}]({_path(run)})"


def _caption(run: Run) -> str:
    rounds = f", rounds: {run.rounds}" if run.rounds else ""
    return f"trioboss {run.trioboss}, Postgres {run.postgres}, {run.cores} cores{rounds}\n({_link(run, 'the run')}):"


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"[\d.,]*( %)?", cell) is not None


def _lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table. Columns of numbers are aligned to the right."""
    numeric = [all(_is_number(row[each]) for row in rows) for each in range(len(columns))]
    yield f"| {' | '.join(columns)} |"
    yield f"|{'|'.join('---:' if right else '---' for right in numeric)}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _show(run: Run, table: Table, *, notes: bool = False) -> str:
    lines = [_caption(run), "", *_lines(table.columns, table.rows)]
    return "\n".join([*lines, *(["", *(f"- {note}" for note in table.notes)] if notes else [])])


def _select(kind: str, heading: str, columns: Sequence[int], *, row: str = "", notes: bool = False) -> str:
    """Some columns of a table of the newest run that has it."""
    run, table = find_run(kind, heading, row)
    return _show(run, table.select(columns), notes=notes)


# -- tables that are made of several


def _peers() -> str:
    """Each kind of work as in the newest run that has it, without rows that others on the machine have disturbed."""
    seen: dict[str, tuple[str, ...]] = {}
    for run in read_runs():
        table = run.get_table("trioboss, the best peer, and the floor") if run.kind == "peers" else None
        for row in table.rows if table is not None else ():
            if "noisy" in row[-1]:
                continue
            source = _link(run, run.trioboss) + (f", {run.rounds}" if run.rounds else "")
            seen.setdefault(row[0], (*row[:6], source))
    columns = ("work", "trioboss", "best peer", "x peer", "floor", "x floor", "version, rounds")
    return "\n".join(_lines(columns, list(seen.values())))


_PAGES = {
    "the overview": r"/(\?text=many)?",
    "one queue": r"/queues/\w+(\?span=\w+)?",
    "a list of jobs": r"/queues/\w+/jobs(\?.*)?",
    "one job": r"/queues/\w+/jobs/.+|/\?text=\{.*",
    "keys, schedules, workers, events": r"/queues/\w+/(keys?|schedule)\b.*|/(schedules|workers|events)\b.*",
    "the preview of a redrive": r"/queues/\w+/redrive.*",
    "the count before an action": r"/queues/\w+/confirm.*",
    "the pipeline, the audit log": "/(pipeline|audit)",
}
"""Kinds of pages of the dashboard, by their paths."""


def _dashboard_pages() -> str:
    """The least and the most milliseconds of the pages of each kind."""
    run, table = find_run("pages", "Milliseconds of each page")
    rows, left = [], {row[0].strip("`"): float(row[2]) for row in table.rows}
    for kind, pattern in _PAGES.items():
        found = sorted(left.pop(path) for path in list(left) if re.fullmatch(pattern, path))
        rows.append((kind, f"{found[0]:g}", f"{found[-1]:g}"))
    if left:
        raise LookupError(f"no kind of page has {', '.join(left)}")
    return "\n".join([_caption(run), "", *_lines(("page", "least ms", "most ms"), rows)])


def _versions() -> str:
    """A note as long as a table shows a run of 0.1."""
    others = "".join(describe() for name, describe in TABLES.items() if name not in ("earlier", "versions"))
    if "trioboss 0.1." not in others and "[0.1." not in others:
        return "All of them are runs of the database core of version 0.2."
    return "Version 0.2 has a new core in the database: figures of 0.1.0 describe another program."


def _newest(kind: str) -> Run:
    for run in read_runs():
        if run.kind == kind:
            return run
    raise LookupError(f"no published run of {kind}")


def _promises() -> str:
    chaos, soak = _newest("chaos"), _newest("soak")
    return (
        f"The [chaos run]({_path(chaos)})\nand the [run under steady load]({_path(soak)})\n"
        "check promises instead of measuring: kills, stops, restarts of Postgres, a full disk, a full queue of\n"
        "notifications, and no job lost, duplicated or out of order."
    )


def _earlier() -> str:
    """The published runs to which nothing else on the page leads."""
    elsewhere = _REGION.sub("", PAGE.read_text("utf-8")) + "".join(
        describe() for name, describe in TABLES.items() if name not in ("earlier", "versions")
    )
    left = [run for run in read_runs() if f"/{run.name}.md)" not in elsewhere]
    return "\n".join(f"- {_link(run, run.name)}, {run.at} UTC" for run in left)


TABLES: Mapping[str, Callable[[], str]] = {
    "versions": _versions,
    "peers": _peers,
    "drains": partial(_select, "peers", "T3", (0, 1, 2, 3, 4, 5)),
    "profile": partial(_select, "profile", "Where one job's time goes", (0, 1, 2), notes=True),
    "compare": partial(_select, "compare", "New/old", (0, 2, 3, 4, 5)),
    "latency": partial(_select, "latency", "Latency, ms", (0, 2, 4), notes=True),
    "growth": partial(_select, "growth", "Growth", (0, 1, 2, 3, 4), row="1,000,000 jobs"),
    "old_transaction": partial(
        _select, "growth", "Growth", (0, 3, 4), row="a drain, strict FIFO on 100 keys"
    ),
    "dashboard": partial(_select, "dashboard", "", (0, 1, 2, 3), row="p99", notes=True),
    "pages": _dashboard_pages,
    "faults": partial(_select, "faults", "Seconds until a job starts", (0, 1, 3)),
    "promises": _promises,
    "idle": partial(_select, "idle", "An idle worker", (0, 1, 2, 3, 4, 5, 6), notes=True),
    "throughput": partial(
        _select, "throughput", "Throughput", (0, 1, 2), row="drain, concurrency 10", notes=True
    ),
    "reading": partial(_select, "pipeline", "Reading", (0, 1, 2, 3, 4)),
    "loading": partial(_select, "pipeline", "Loading", (0, 1, 2, 3), notes=True),
    "exporting": partial(_select, "pipeline", "Exporting", (0, 1, 2, 3)),
    "reports": partial(_select, "pipeline", "Report over a lake", (0, 1, 2)),
    "earlier": _earlier,
}
"""By the name in the page: the function that returns the text."""


def replace_tables(page: str) -> str:
    """The page with the tables of the newest runs."""
    return _REGION.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n\n{found[3]}", page)


if __name__ == "__main__":
    PAGE.write_text(replace_tables(PAGE.read_text("utf-8")), "utf-8")
