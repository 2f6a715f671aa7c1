"""The page of the pipeline has the arguments of its commands, and the options of its data source."""

import re
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the parsers of the pipeline need PySpark", exc_type=ImportError)

from docs.pages.pipeline import PAGE, find_parser, replace_jobs
from trioboss.cli.parser import PIPELINE_JOBS
from trioboss.pipeline.options import ReadOptions, WriteOptions

TEXT = PAGE.read_text("utf-8")
ROOT = Path(__file__).parents[2]


def test_the_arguments_are_up_to_date():
    assert replace_jobs(TEXT) == TEXT, "`python -m docs.pages.pipeline` writes them again"


@pytest.mark.parametrize("job", PIPELINE_JOBS)
def test_every_argument_is_described(job):
    assert [action.dest for action in find_parser(job)._actions if not action.help] == []


@pytest.mark.parametrize("job", PIPELINE_JOBS)
def test_the_help_of_a_command_ends_with_the_address_of_its_section(job):
    address = " ".join(find_parser(job).format_help().split()).rpartition("Documentation: ")[2]

    assert address.endswith(f"/docs/{PAGE.relative_to(ROOT / 'docs').as_posix()}#trioboss-pipeline-{job}")
    assert f"\n## trioboss pipeline {job}\n" in TEXT


@pytest.mark.parametrize(("kind", "options"), [("reads", ReadOptions), ("writes", WriteOptions)])
def test_every_option_of_the_data_source_is_described(kind, options):
    table = TEXT.partition(f"| option of {kind} |")[2].partition("\n\n")[0]
    cells = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)

    assert sorted(name for cell in cells for name in re.findall(r"`(\w+)`", cell)) == sorted(options.NAMES)
