"""`python -m benchmarks COMMAND`: one server, one table for each question, progress on standard error."""

import importlib
import sys
from pathlib import Path

from benchmarks.harness.environment import describe, in_words
from benchmarks.harness.options import Options, parse
from benchmarks.harness.progress import say
from benchmarks.harness.report import Report
from benchmarks.harness.server import open_server

# One needs Spark, the other ends with a verdict.
_WITH_OPTIONS_OF_THEIR_OWN = {"pipeline": "benchmarks.pipeline", "chaos": "benchmarks.chaos.command"}


def main() -> int:
    """Answer the questions that were asked."""
    if (module := _WITH_OPTIONS_OF_THEIR_OWN.get("".join(sys.argv[1:2]))) is not None:
        return int(importlib.import_module(module).main(sys.argv[2:]) or 0)
    options = parse()
    with open_server(options.dsn) as server:
        environment = describe(server)
        print(in_words(environment), end="\n\n", flush=True)
        for command in options.commands:
            say(command)
            report: Report = importlib.import_module(f"benchmarks.{command}").measure(server, options)
            print(report.render(), flush=True)
            append = options.append if command == "peers" else None
            say(f"kept as {report.save(options.results, environment, append)}")
            _plot(report, options)
    return 0


def _plot(report: Report, options: Options) -> None:
    if options.plot is None:
        return
    path = options.plot
    if len(options.commands) > 1:
        path = Path(path.parent, f"{path.stem}-{report.command}{path.suffix}")
    report.plot(path)
    say(f"drawn in {path}")


if __name__ == "__main__":
    sys.exit(main())
