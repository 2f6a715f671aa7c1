"""Published runs are small summaries, and documents link to each of them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import publish
from benchmarks.harness.summary import MAX_LINES, TooLong, summarize_run
from benchmarks.harness.tables import Spread, Table

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("docs/benchmarks.md", "GUARANTEES.md", "benchmarks/README.md")
PUBLISHED = sorted(publish.PUBLISHED.iterdir())


def linked() -> set[Path]:
    """Return the published files that documents link to."""
    links = (
        (ROOT / document, link)
        for document in DOCUMENTS
        for link in re.findall(r"\]\(([^)]*results/published/[^)]+)\)", (ROOT / document).read_text())
    )
    return {(document.parent / link).resolve() for document, link in links}


def test_every_link_to_a_published_run_leads_to_a_file():
    assert [path for path in linked() if not path.exists()] == []


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.name)
def test_a_published_run_is_a_short_page_that_a_document_links_to(path: Path):
    assert path.suffix == ".md"
    assert len(path.read_text().splitlines()) <= MAX_LINES
    assert path in linked()


def raw_run(**tables: int) -> dict[str, Any]:
    """Return a raw file with tables of so many rows."""
    made = [
        Table(title, ("queue", "jobs/s"), [["a", Spread(2.0, 1.0, 3.0, 3)]] * rows)
        for title, rows in tables.items()
    ]
    return {
        "command": "latency",
        "environment": {
            "machine": {
                "cpu": "Some CPU",
                "cores": 2,
                "memory_gb": 23.5,
                "system": "Linux 6.18.44-some-host",
                "data_on": "ext4",
                "load_at_start": 0.1,
            },
            "versions": {"python": "3.11", "commit": "abc"},
        },
        "runs": [{"at": "2026-11-16 10:00 UTC", "command": "python -m benchmarks latency", "commit": "abc"}],
        "tables": [
            {**vars_of(table), "rows": [[row[0], vars_of(row[1])] for row in table.rows]} for table in made
        ],
    }


def vars_of(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in value.__attrs_attrs__}


def test_a_summary_has_the_run_the_class_of_machine_and_medians_with_ranges(tmp_path: Path):
    raw = tmp_path / "raw.json"
    raw.write_text(json.dumps(raw_run(Speed=1)))
    assert publish.main([str(raw), "--to", str(tmp_path)]) == 0
    text = (tmp_path / "latency-20261116.md").read_text()
    assert "`python -m benchmarks latency` (2026-11-16 10:00 UTC, commit abc)" in text
    assert "2 cores (Some CPU), 24 GB, Linux 6.18, data on ext4" in text
    assert "some-host" not in text
    assert "2.00 (1.00–3.00)" in text  # noqa: RUF001


def test_a_run_that_is_too_long_for_a_summary_is_refused():
    with pytest.raises(TooLong, match="publish fewer"):
        summarize_run(raw_run(Speed=MAX_LINES))
