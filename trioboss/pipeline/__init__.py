"""Job history and bulk loads on Spark. `pip install trioboss[spark]` brings all it needs, Java included.

    from trioboss.pipeline import get_session

    spark = get_session()
    ended = spark.read.format("trioboss").option("dsn", dsn).option("table", "archive").load()

Nothing of Spark is imported before one of these names is used.

Commands:

jobs              the commands: archive, compact, erase, report, audit, capacity, load, synth, all
arguments         the arguments that they have in common, and the order in which they start
migration         migrates an embedded server
timings           where the time of a command went
progress          how far it is
describing        names the steps of a command in the UI of Spark
terminal          tables and JSON on the terminal
stopping          SIGTERM and SIGINT
low_priority      a low priority for exports

Spark:

session           the session
remote            sessions of Spark Connect
java              a Java for Spark
source            the data source `trioboss`
options           its options
columns           the tables that it has, and their columns

Reading history:

batch_reader      `spark.read`
stream_reader     `spark.readStream`
history_reader    what both have in common: the tasks of a query, and how each reads its share
planning          divides a table among tasks
query             the statement that reads rows
redaction         leaves out columns, and fields of JSON
chunks            reads by short statements
prefetch          reads ahead
decoding          what COPY sends, as Arrow
registration      lets all tasks read as of one instant, and retention wait for them
database          the statements of the pipeline, on a blocking connection
days              ranges of days
history           history from the database or from a lake, for commands that analyse it
payload           payloads as columns

Bulk loads:

inputs            files and tables, and how their columns become jobs
batch_writer      `df.write`
rows              rows of a DataFrame as rows of a stage
json_values       values of Spark as JSON
ids               ids for jobs that bring none
staging           the tables in which tasks put rows
arrow_connection  connections that take Arrow
releasing         makes jobs of staged rows, all or none

Lakes:

lake              the folders and files of a lake
manifest          which files are part of it
files             the file systems
taking            takes it for an export or a change
export            exports history to it
held_back         the transaction that keeps rows from being exported
rewriting         replaces files
erasing           finds and erases jobs
delta             the tables of Delta Lake

Analysis:

transforms        questions to history
queueing          how many slots keep waits short
page              the report as a page
synthetic         history that was made up
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trioboss.pipeline.history import Source
    from trioboss.pipeline.jobs.archive import archive
    from trioboss.pipeline.jobs.audit import audit
    from trioboss.pipeline.jobs.capacity import capacity
    from trioboss.pipeline.jobs.compact import compact
    from trioboss.pipeline.jobs.erase import erase
    from trioboss.pipeline.jobs.load import load
    from trioboss.pipeline.jobs.report import report
    from trioboss.pipeline.jobs.synth import synth
    from trioboss.pipeline.lake import list_files, read_lake
    from trioboss.pipeline.payload import count_payloads, type_payload
    from trioboss.pipeline.releasing import LoadRefused
    from trioboss.pipeline.session import get_session, register

__all__ = [
    "LoadRefused",
    "Source",
    "archive",
    "audit",
    "capacity",
    "compact",
    "count_payloads",
    "erase",
    "get_session",
    "list_files",
    "load",
    "read_lake",
    "register",
    "report",
    "synth",
    "type_payload",
]

_MODULES = {
    "LoadRefused": "releasing",
    "Source": "history",
    "archive": "jobs.archive",
    "audit": "jobs.audit",
    "capacity": "jobs.capacity",
    "compact": "jobs.compact",
    "count_payloads": "payload",
    "erase": "jobs.erase",
    "get_session": "session",
    "list_files": "lake",
    "load": "jobs.load",
    "read_lake": "lake",
    "register": "session",
    "report": "jobs.report",
    "synth": "jobs.synth",
    "type_payload": "payload",
}

if not TYPE_CHECKING:  # a type checker that sees it takes every name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            module = import_module(f"{__name__}.{_MODULES[name]}")
        except ModuleNotFoundError as error:
            raise ImportError(
                f"no module {error.name!r}: pip install 'trioboss[spark]'", name=error.name
            ) from error
        return getattr(module, name)
