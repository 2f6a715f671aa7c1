"""The example of the pipeline runs, in the session that is there: tests/test_examples.py runs all the others."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "12_backfill_to_report.py"


def test_the_example_of_the_pipeline_runs(spark, dsn, monkeypatch, capsys):
    monkeypatch.setenv("TRIOBOSS_DSN", dsn)

    runpy.run_path(str(EXAMPLE), run_name="__main__")

    said = capsys.readouterr().out
    assert "loaded 200" in said
    assert "audit: 0 violations in 200 jobs" in said
    assert "error: 1 x ConnectionError: no answer from <address>" in said
    assert "page: report.html" in said
