"""How fast does Spark read history and load jobs?

read    1,000,000 archived jobs: all columns, four columns, one queue of eight, their number, in a session that has
        read before and in a new one; compared with Spark's JDBC source
decode  the same rows by COPY and our decoding, and by ADBC, without Spark
write   a load of 1,000,000 jobs; compared with Spark's JDBC writer
beside  the waits of a worker at 500 jobs/s, alone and while `trioboss pipeline archive` runs on the same cores
report  a report over 1,000,000 and over 10,000,000 jobs
base    a report over 1,000,000 jobs; compared with another checkout: `git worktree add ../base 1202cc9`, --base ../base
audit   an audit over the same as report
lake    an export of 1,000,000 jobs in 20 batches, its conversion to Delta, a compaction, and the erasure of a job
kills   20 kills in every phase of archive, load, compact and erase: rows lost or doubled

The JDBC driver is found where the Debian package libpostgresql-jdbc-java installs it, or by --jdbc; without it the
comparisons are left out. Takes about 60 minutes, and the kills another two hours.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.environment import as_text, describe
from benchmarks.harness.options import RESULTS
from benchmarks.harness.progress import log
from benchmarks.harness.report import Report
from benchmarks.harness.server import open_server
from benchmarks.harness.tables import Table
from benchmarks.pipelines.beside import measure_beside
from benchmarks.pipelines.context import PipelineContext, find_jar, open_spark
from benchmarks.pipelines.decoding import measure_decoding
from benchmarks.pipelines.kills import measure_kills
from benchmarks.pipelines.lakes import measure_lakes
from benchmarks.pipelines.reading import measure_reading
from benchmarks.pipelines.reporting import measure_auditing, measure_base, measure_reporting
from benchmarks.pipelines.writing import measure_writing

__all__ = ["main"]

MEASURES: dict[str, Callable[[PipelineContext], Table]] = {
    "read": measure_reading,
    "decode": measure_decoding,
    "write": measure_writing,
    "beside": measure_beside,
    "report": measure_reporting,
    "base": measure_base,
    "audit": measure_auditing,
    "lake": measure_lakes,
    "kills": measure_kills,
}


def main(argv: list[str] | None = None) -> int:
    """Measure the selected parts."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks pipeline",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", choices=tuple(MEASURES), action="append", help="only this part; may be repeated"
    )
    parser.add_argument("--dsn", help="a Postgres on TCP in which databases are created (default: start one)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="how many jobs (default: 1,000,000)")
    parser.add_argument(
        "--repeats", type=int, default=3, help="rounds; tables show median and range (default: 3)"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="20,000 rows, one round, one kill in each phase: shows that it works, not how fast",
    )
    parser.add_argument("--kills", type=int, default=20, help="how many in each phase (default: 20)")
    parser.add_argument("--base", type=Path, metavar="CHECKOUT", help="another checkout, for `base`")
    parser.add_argument("--jdbc", metavar="JAR", help="PostgreSQL's JDBC driver")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the raw JSON files")
    parser.add_argument(
        "--append",
        type=Path,
        metavar="FILE",
        help="add to the tables of this file, in place of those measured again",
    )
    given = parser.parse_args(argv)
    parts = given.only or [name for name in MEASURES if name != "base" or given.base is not None]
    if "base" in parts and given.base is None:
        parser.error("base: name the other checkout by --base")
    rows, repeats = (20_000, 1) if given.quick else (given.rows, given.repeats)
    jar = find_jar(given.jdbc)
    with open_server(given.dsn) as server:
        environment = describe(server)
        print(as_text(environment), end="\n\n", flush=True)
        context = PipelineContext(
            server,
            open_spark(jar),
            jar,
            rows,
            repeats,
            kills=1 if given.quick else given.kills,
            base=given.base,
        )
        report = Report("pipeline")
        for name in parts:
            log(name)
            report.tables.append(MEASURES[name](context))
        print(report.render(), flush=True)
        report.tables[:0] = _read_others(given.append, report.tables)
        log(f"stored in {report.save(given.results, environment, given.append)}")
        context.spark.stop()
    return 0


def _read_others(path: Path | None, measured: list[Table]) -> list[Table]:
    """Return the tables of earlier runs that were not measured again."""
    if path is None or not path.exists():
        return []
    titles = {table.title for table in measured}
    stored = [Table.from_json(table) for table in json.loads(path.read_text())["tables"]]
    return [table for table in stored if table.title not in titles]
