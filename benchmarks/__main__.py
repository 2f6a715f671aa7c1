"""`python -m benchmarks COMMAND`: runs a benchmark. Tables go to standard output, progress to standard error."""

import importlib
import sys
from pathlib import Path

from benchmarks.harness.environment import as_text, describe
from benchmarks.harness.options import Options, parse
from benchmarks.harness.progress import log
from benchmarks.harness.report import Report
from benchmarks.harness.server import open_server

# These have their own command lines. They are imported when they are used, because `pipeline` needs Spark.
_WITH_OWN_OPTIONS = ("compare", "pipeline", "publish")


def main() -> int:
    """Run one command."""
    if (name := "".join(sys.argv[1:2])) in _WITH_OWN_OPTIONS:
        return int(importlib.import_module(f"benchmarks.{name}").main(sys.argv[2:]) or 0)
    options = parse()
    with open_server(options.dsn) as server:
        environment = describe(server)
        print(as_text(environment), end="\n\n", flush=True)
        for command in options.commands:
            log(command)
            report: Report = importlib.import_module(f"benchmarks.{command}").measure(server, options)
            print(report.render(), flush=True)
            append = options.append if command == "peers" else None
            log(f"stored in {report.save(options.results, environment, append)}")
            _plot(report, options)
    return 0


def _plot(report: Report, options: Options) -> None:
    if options.plot is None:
        return
    path = options.plot
    if len(options.commands) > 1:
        path = Path(path.parent, f"{path.stem}-{report.command}{path.suffix}")
    report.plot(path)
    log(f"drawn in {path}")


if __name__ == "__main__":
    sys.exit(main())
