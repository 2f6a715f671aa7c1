"""`python -m benchmarks pipeline`: history and bulk loads on Spark, beside what Spark brings itself."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.environment import describe, in_words
from benchmarks.harness.progress import say
from benchmarks.harness.report import Report
from benchmarks.harness.server import open_server
from benchmarks.harness.tables import Table
from benchmarks.pipelines.beside import measure_beside
from benchmarks.pipelines.reading import measure_reading
from benchmarks.pipelines.reporting import measure_auditing, measure_reporting
from benchmarks.pipelines.setting import Setting, find_jar, open_spark
from benchmarks.pipelines.writing import measure_writing

__all__ = ["main"]

MEASURES: dict[str, Callable[[Setting], Table]] = {
    "read": measure_reading,
    "write": measure_writing,
    "beside": measure_beside,
    "report": measure_reporting,
    "audit": measure_auditing,
}


def main(argv: list[str] | None = None) -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks pipeline", description=__doc__)
    parser.add_argument(
        "--only", choices=tuple(MEASURES), action="append", help="only this measure; may be repeated"
    )
    parser.add_argument("--dsn", help="a server to use, on TCP (default: one of our own)")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="show that it works, not how fast")
    parser.add_argument(
        "--jdbc", metavar="JAR", help="PostgreSQL's JDBC driver, if it is not where Debian puts it"
    )
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument(
        "--append",
        type=Path,
        metavar="FILE",
        help="keep the results in this file, with what it has of others",
    )
    given = parser.parse_args(argv)
    rows, repeats = (20_000, 1) if given.quick else (given.rows, given.repeats)
    jar = find_jar(given.jdbc)
    with open_server(given.dsn) as server:
        environment = describe(server)
        print(in_words(environment), end="\n\n", flush=True)
        setting = Setting(server, open_spark(jar), jar, rows, repeats)
        report = Report("pipeline")
        for name in given.only or MEASURES:
            say(name)
            report.tables.append(MEASURES[name](setting))
        print(report.render(), flush=True)
        report.tables[:0] = _read_others(given.append, report.tables)
        say(f"kept as {report.save(given.results, environment, given.append)}")
        setting.spark.stop()
    return 0


def _read_others(path: Path | None, measured: list[Table]) -> list[Table]:
    """The tables of earlier runs that were not measured again."""
    if path is None or not path.exists():
        return []
    titles = {table.title for table in measured}
    return [Table(**kept) for kept in json.loads(path.read_text())["tables"] if kept["title"] not in titles]
