"""The parser of all commands. It imports nothing that takes long: `trioboss -h` has to answer at once.

Each command names the function that runs it as `module:function`, below trioboss.cli. The module is imported when the
command is run.
"""

import argparse
from collections.abc import Callable, Sequence

from trioboss._version import __version__
from trioboss.cli.job_parser import QUEUE, add_jobs, add_send_options
from trioboss.cli.queue_options import QUEUE_OPTIONS, add_queue_options

__all__ = ["PAGE_OF", "make_parser", "page_of"]

Add = Callable[..., argparse.ArgumentParser]

_EPILOG = """\
The database is --dsn, else TRIOBOSS_DSN, else DATABASE_URL, else an embedded Postgres. The schema is --schema, else
TRIOBOSS_SCHEMA, else trioboss. `--config FILE` reads both, and the options of a command, from a TOML file; the command
line goes before the file, and the file before the environment.
Exit codes: 0 done, 1 it failed or nothing matched, 2 the command cannot work as written, or a right is missing.
Documentation: https://github.com/trioboss/trioboss/tree/main/docs
"""
_DOCS = "https://github.com/trioboss/trioboss/blob/main/docs/"
# The page that is about a command, for the end of its help.
_PAGES = {
    "guides/a-deployment-from-zero.md": "migrate grants version rollback",
    "guides/a-job-is-not-running.md": "why doctor",
    "guides/a-key-is-blocked.md": "blocked jobs show retry cancel resume delete redrive update-job",
    "guides/dashboards-and-alerts.md": "dashboard top",
    "guides/kubernetes-and-systemd.md": "worker",
    "guides/operations.md": "queues workers schedules uninstall plans",
    "guides/sending-jobs.md": "send",
    "guides/spark.md": "pipeline",
    "guides/postgres-restarts.md": "pause unpause",
    "reference/options.md": "create-queue update-queue delete-queue",
    "reference/sql.md": "psql",
    "tutorial/cron.md": "schedule unschedule",
    "tutorial/index.md": "demo",
}
PAGE_OF = {command: page for page, commands in _PAGES.items() for command in commands.split()}
"""The page of each command, below docs/."""


def page_of(arguments: Sequence[str]) -> str:
    """The address of the page about the command that these arguments begin with."""
    return _DOCS + PAGE_OF.get(arguments[0] if arguments else "", "reference/commands.md")


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="trioboss",
        description="A Postgres job queue for structured concurrency.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"trioboss {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, text: str, run: str, *, json: bool = False) -> argparse.ArgumentParser:
        description = text[0].upper() + text[1:] + "."
        epilog = f"Documentation: {page_of([name])}"
        # Raw: an address that is longer than a line must not be broken.
        raw = argparse.RawDescriptionHelpFormatter
        command = commands.add_parser(
            name, help=text, description=description, epilog=epilog, formatter_class=raw
        )
        command.add_argument(
            "--dsn", help="the database (default: TRIOBOSS_DSN, DATABASE_URL, or an embedded Postgres)"
        )
        command.add_argument("--schema", help="the schema (default: TRIOBOSS_SCHEMA, or trioboss)")
        command.add_argument("--config", metavar="FILE", help="read options from a TOML file")
        if json:
            command.add_argument("--json", action="store_true", help="print JSON")
        command.set_defaults(run=run)
        return command

    _add_worker(add)
    _add_watching(add)
    add_jobs(add)
    _add_queues(add)
    _add_schema(add)
    _add_pipeline(commands.add_parser)
    return parser


def _add_worker(add: Add) -> None:
    parser = add("worker", "run the workers of an app", "worker:run_worker")
    parser.add_argument("app", metavar="MODULE:APP", help="the app, as module:variable")
    parser.add_argument("--queue", "-q", action="append", help="only these queues (may be repeated)")
    parser.add_argument(
        "--concurrency", "-c", type=int, help="how many jobs run at once (default: as the app declares)"
    )
    parser.add_argument("--processes", "-p", type=int, default=1, help="how many worker processes to run")
    parser.add_argument(
        "--grace", type=float, default=30.0, help="seconds that running jobs have when the worker stops"
    )
    parser.add_argument(
        "--wait", type=float, default=30.0, help="seconds to wait for the database at the start"
    )
    parser.add_argument(
        "--presence-grace",
        type=float,
        default=None,
        help="seconds after which others take the jobs of a worker that is gone",
    )
    _add_serving(parser)
    _add_redact(parser)
    parser.add_argument(
        "--embedded",
        action="store_true",
        help="use the embedded Postgres if no database is named (on a terminal it is used without asking)",
    )
    _add_log(parser)
    parser.add_argument("--exit-with-parent", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--no-migrate", action="store_true", help="change no schema, queue or schedule")


def _add_serving(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--health",
        metavar="[HOST:]PORT",
        help="serve /live, /ready and /metrics; further processes use the next ports",
    )
    parser.add_argument(
        "--dashboard",
        metavar="[HOST:]PORT",
        help="serve the dashboard, which only reads; of several processes the first one serves it",
    )
    parser.add_argument(
        "--dashboard-act", action="store_true", help="let the dashboard act, as the role of the worker"
    )


def _add_log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json-logs", action="store_true", help="log JSON lines")
    parser.add_argument(
        "--log-level",
        default="info",
        choices=("debug", "info", "warning", "error"),
        help="the lowest level that is logged (default: info)",
    )
    parser.add_argument(
        "--color",
        default="auto",
        choices=("auto", "always", "never"),
        help="colour the log (default: on a terminal)",
    )


def _add_watching(add: Add) -> None:
    parser = add("demo", "measure latency and throughput on an embedded Postgres", "demo:run_demo")
    parser.add_argument(
        "--seconds", type=float, default=8.0, help="how long to send jobs one after the other"
    )
    parser.add_argument(
        "--dashboard",
        metavar="[HOST:]PORT",
        nargs="?",
        const="8020",
        help="serve the dashboard, at port 8020 unless given, and go on until Ctrl-C; it can act on the demo",
    )
    parser.add_argument("--no-act", action="store_true", help="a dashboard that only reads")
    _add_redact(parser)
    _add_dashboard(add)
    parser = add("top", "show queues, running jobs, failures and workers, live on a terminal", "top:run_top")
    parser.add_argument("--interval", type=float, default=2.0, help="seconds between two views (default: 2)")
    parser.add_argument("--once", action="store_true", help="print one view as plain text, and end")
    _add_psql(add)
    add("queues", "list queues with the number of their jobs", "admin:queues", json=True)
    parser = add(
        "blocked",
        "list keys that a failed job blocks, and how to unblock them",
        "inspecting:blocked",
        json=True,
    )
    parser.add_argument("queue", nargs="?", help="only this queue (default: all)")
    parser.add_argument("--limit", type=int, default=100, help="how many at most (default: 100)")
    add("workers", "list workers, and what they run", "inspecting:workers", json=True)
    add("schedules", "list schedules", "admin:schedules", json=True)
    add(
        "doctor",
        "check connection, schema, notifications and health, with advice",
        "doctor:run_doctor",
        json=True,
    )


def _add_psql(add: Add) -> None:
    text = "run psql on the database, also on the embedded one; psql gets all other options, like -At"
    parser = add("psql", text, "psql:run_psql")
    parser.add_argument(
        "-c", dest="statements", metavar="SQL", action="append", help="run this, and end (may be repeated)"
    )
    parser.add_argument("-f", dest="files", metavar="FILE", action="append", help="run this file, and end")


def _add_dashboard(add: Add) -> None:
    text = "serve the dashboard: see the queues in a browser, and act on them"
    parser = add("dashboard", text, "dashboard:run_dashboard")
    parser.add_argument(
        "--act-dsn", help="the database as a role that may act; without it, the dashboard only reads"
    )
    parser.add_argument("--act", action="store_true", help="act as the role that reads")
    parser.add_argument("--port", type=int, default=8020, help="the port (default: 8020)")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="other than this machine: needs TRIOBOSS_DASHBOARD_PASSWORD in the environment",
    )
    _add_redact(parser)


def _add_redact(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--redact",
        action="append",
        metavar="FIELD",
        help="hide fields of this name in the dashboard (may be repeated)",
    )


def _add_queues(add: Add) -> None:
    parser = add("create-queue", "create a queue", "queue_admin:create_queue")
    parser.add_argument("name", help=QUEUE)
    add_queue_options(parser, QUEUE_OPTIONS)
    parser = add("update-queue", "change options of a queue; queued jobs follow", "queue_admin:update_queue")
    parser.add_argument("name", help=QUEUE)
    changeable = {name: kind for name, kind in QUEUE_OPTIONS.items() if name not in ("policy", "partition")}
    add_queue_options(parser, changeable)
    parser = add("delete-queue", "delete a queue with its live jobs", "queue_admin:delete_queue")
    parser.add_argument("name", help=QUEUE)
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")
    for name, text in (
        ("pause", "let no worker claim jobs of a queue"),
        ("unpause", "let workers claim jobs of a queue again"),
    ):
        add(name, text, "admin:pause").add_argument("queue", help=QUEUE)
    parser = add("schedule", "send a job at every tick of a cron expression", "queue_admin:schedule")
    parser.add_argument("queue", help=QUEUE)
    parser.add_argument("cron", help="five fields, or six with seconds first: '0 3 * * *'")
    parser.add_argument("data", nargs="?", metavar="JSON", help="the data of the job (default: null)")
    parser.add_argument("--tz", default="UTC", help="the time zone (default: UTC)")
    parser.add_argument("--key", default="", help="a queue has one schedule for each key")
    parser.add_argument(
        "--missed",
        default="skip",
        choices=("skip", "latest", "all"),
        help="which ticks to fire that were due while no worker ran; all: at most the last 1,000 (default: skip)",
    )
    add_send_options(parser)
    parser = add("unschedule", "remove a schedule", "queue_admin:unschedule")
    parser.add_argument("queue", help=QUEUE)
    parser.add_argument("--key", default="", help="the key of the schedule")


def _add_schema(add: Add) -> None:
    parser = add(
        "migrate", "create or update the schema, and the queues and schedules of an app", "schema:migrate"
    )
    parser.add_argument("app", nargs="?", metavar="MODULE:APP", help="also deploy what this app declares")
    parser.add_argument("--plan", action="store_true", help="print what would be done, and do nothing")
    parser.add_argument(
        "--prune", action="store_true", help="delete what the app, if it has a label, no longer schedules"
    )
    parser.add_argument(
        "--adopt", action="store_true", help="change queues and schedules that the app did not make, too"
    )
    parser.add_argument(
        "--no-create-schema", action="store_true", help="install only into a schema that exists"
    )
    parser = add(
        "version", "print the versions of this program and of the schema", "schema:version", json=True
    )
    parser = add("plans", "print the SQL of the schema, without a database", "plans:plans")
    parser.add_argument(
        "plan",
        choices=("install", "migrate", "rollback", "uninstall"),
        metavar="PLAN",
        help="install, migrate, rollback or uninstall",
    )
    parser.add_argument(
        "--from", dest="from_version", type=int, metavar="VERSION", help="the version that it starts with"
    )
    parser.add_argument("--to", type=int, metavar="VERSION", help="rollback: the version that it ends with")
    parser = add("rollback", "take the schema back to an older version", "schema:rollback")
    parser.add_argument("--to", type=int, metavar="VERSION", help="default: the version before")
    parser.add_argument("--plan", action="store_true", help="print the SQL, and do nothing")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")
    parser = add("uninstall", "remove everything of trioboss from a schema", "schema:uninstall")
    parser.add_argument("--plan", action="store_true", help="print the SQL, and do nothing")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")
    _add_grants(add)


def _add_grants(add: Add) -> None:
    parser = add("grants", "print the SQL that grants roles the rights they need", "grants:grants")
    texts = {
        "producer": "sends jobs, reads no payloads",
        "worker": "claims and settles jobs, does maintenance",
        "reader": "reads everything, changes nothing",
        "admin": "owns the schema: migrates, creates queues",
    }
    for kind, text in texts.items():
        parser.add_argument(f"--{kind}", metavar="ROLE", help=f"the role that {text}")
    parser.add_argument("--apply", action="store_true", help="also execute it")


PIPELINE_JOBS = {
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


def _add_pipeline(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    jobs = "\n".join(f"  {name:9} {text}" for name, text in PIPELINE_JOBS.items())
    parser = add_parser(
        "pipeline",
        help="job history and bulk loads on Spark",
        description="Job history and bulk loads on Spark.",
        epilog=f"jobs:\n{jobs}\n\n`trioboss pipeline JOB -h` lists its arguments.\n"
        f"Documentation: {page_of(['pipeline'])}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("job", choices=PIPELINE_JOBS, metavar="JOB", help="one of those below")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="…", help="what the job takes")
    parser.set_defaults(dsn=None, schema=None, config=None, run="pipeline:run_pipeline")
