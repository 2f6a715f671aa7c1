"""Write the small summary of a stored run.

The raw JSON files of benchmarks/results/ have every sample and are ignored by git. A summary has what was run, when,
on which class of machine, and the tables: medians, ranges and ratios. It goes to benchmarks/results/published/, which
is kept in git. A document should link to it: a test fails for a published file without a link.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.options import RESULTS
from benchmarks.harness.summary import TooLong, summarize_run

__all__ = ["PUBLISHED", "main"]

PUBLISHED = RESULTS / "published"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write one summary."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks publish",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="FILE.json", help="a raw file of benchmarks/results/")
    parser.add_argument("--name", help="name of the summary (default: COMMAND-DATE)")
    parser.add_argument("--to", type=Path, default=PUBLISHED, help="folder (default: %(default)s)")
    given = parser.parse_args(arguments)
    content = json.loads(given.file.read_text())
    try:
        text = summarize_run(content)
    except TooLong as error:
        parser.error(f"{given.file}: {error}")
    day = content["runs"][-1]["at"].partition(" ")[0].replace("-", "")
    path = given.to / f"{given.name or content['command'] + '-' + day}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    print(path)
    return 0
