"""The command line: parse, call, print. No decision is made here.

parser         all commands and their arguments; imports nothing that takes long
job_parser     those of the commands about jobs
parsing        unknown commands and options
queue_options  the options of queues as arguments
config         `--config FILE`
commands       how a command is run, and what a user's mistake looks like
opening        how a command opens its boss
output         tables, JSON, questions and error messages
times          times and durations, as people write and read them
admin          the commands that are one call on a boss
acting         retry, cancel, resume and delete by id or by a filter; redrive, update-job
queue_admin    create, change and delete queues and schedules
inspecting     `trioboss show`, `trioboss blocked` and `trioboss workers`
top            `trioboss top`
psql           `trioboss psql`
role_kinds     which kind of role the program connects as
schema         migrate, version, rollback, uninstall
plans          `trioboss plans`
deploying      `trioboss migrate MODULE:APP`
worker         `trioboss worker`: signals
processes      `trioboss worker --processes`
banner         the first lines of a worker
signals        the signals that stop a command
stopping       what a stopping worker waits for
health         `trioboss worker --health`: probes and metrics over HTTP
database_metrics  metrics that the database has to be asked for
logs           `trioboss worker`: log lines for people, or as JSON
loading        finds the app that MODULE:APP names
demo           `trioboss demo`
dashboard      `trioboss dashboard`, and the dashboard beside a worker
doctor         `trioboss doctor`
findings       the checks of the doctor
drift          where a schema differs from what the migrations make
drift_rights   where its rights differ
drift_renames  tables and columns that have another name
repairs        the statements that repair it
grants         `trioboss grants`
pipeline       `trioboss pipeline`
"""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:2] == ["pipeline", "archive"]:
        # Before anything else is imported: the imports alone would delay other processes.
        import_module("trioboss.pipeline.low_priority").lower_priority_early(given[2:])
    if arguments is None:
        # Imports make many objects and no garbage: they take a tenth less without the collector. `run` enables it.
        gc.disable()
    code: int = import_module("trioboss.cli.commands").run(given)
    return code
