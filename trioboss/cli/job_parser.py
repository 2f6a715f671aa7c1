"""The arguments of the commands about jobs: send, list, show, retry, cancel and so on."""

import argparse
from collections.abc import Callable

__all__ = ["QUEUE", "add_jobs", "add_send_options"]

Add = Callable[..., argparse.ArgumentParser]

QUEUE = "the name of the queue"
_STATES = "created, retry, active, completed, cancelled or failed"
_TIME = "a time (2026-11-17 or 2026-11-17T08:00Z), or how long ago (90s, 15m, 1h, 2d)"


def add_jobs(add: Add) -> None:
    """Add the commands that send, find and change jobs."""
    _add_finding(add)
    _add_changing(add)


def _add_finding(add: Add) -> None:
    parser = add("send", "send a job", "admin:send")
    parser.add_argument("queue", help=QUEUE)
    parser.add_argument("data", nargs="?", metavar="JSON", help="the data of the job (default: null)")
    add_send_options(parser)
    parser = add("jobs", "list jobs of a queue, live and ended", "admin:jobs", json=True)
    parser.add_argument("queue", help=QUEUE)
    _add_filters(parser)
    parser.add_argument("--newest", action="store_true", help="the newest first")
    parser.add_argument("--after", metavar="ID", help="the next page: the jobs after this one")
    parser.add_argument("--limit", type=int, default=50, help="how many at most (default: 50)")
    parser.add_argument("--data", action="store_true", help="also show payloads and outputs")
    parser = add("show", "show everything about one job", "inspecting:show", json=True)
    parser.add_argument("queue", help=QUEUE)
    parser.add_argument("id", help="the id of the job")
    parser.add_argument("--data", action="store_true", help="also show the payload and the output")
    parser = add("why", "explain why a job is not running", "admin:why", json=True)
    parser.add_argument("queue", help=QUEUE)
    parser.add_argument("id", help="the id of the job")


def _add_changing(add: Add) -> None:
    for name, text in (
        ("retry", "retry failed jobs: some, or all that match"),
        ("cancel", "cancel queued or active jobs: some, or all that match"),
        ("resume", "queue cancelled jobs again: some, or all that match"),
        ("delete", "delete jobs: some, or all that match"),
    ):
        parser = add(name, text, "acting:act")
        parser.add_argument("queue", help=QUEUE)
        parser.add_argument("id", nargs="*", help="the jobs; or a filter:")
        _add_filters(parser)
        parser.add_argument("--limit", type=int, help="how many at most")
        parser.add_argument("--all", action="store_true", help="all jobs that this can be done to")
        _add_confirmation(parser)
    parser = add("update-job", "change the data or options of a queued job", "acting:update_job")
    parser.add_argument("queue", help=QUEUE)
    parser.add_argument("id", help="the id of the job")
    parser.add_argument("--data", metavar="JSON", help="the new data")
    add_send_options(parser)
    parser = add(
        "redrive", "send jobs of a dead letter queue back to where they failed", "acting:redrive", json=True
    )
    parser.add_argument("queue", metavar="DEAD_LETTERQUEUE", help="the name of the dead letter queue")
    parser.add_argument("--to", metavar="QUEUE", help="send them to this queue instead")
    parser.add_argument("--source", metavar="QUEUE", help="only jobs that failed in this queue")
    parser.add_argument("--limit", type=int, help="how many at most, the oldest first")
    parser.add_argument(
        "--force",
        action="store_true",
        help="also copies of jobs that block their key, were retried, or have completed: work is done twice",
    )
    _add_confirmation(parser)


def add_send_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a job."""
    parser.add_argument(
        "--option",
        "-o",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of send, as priority=5 (may be repeated)",
    )


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--state", help=_STATES)
    parser.add_argument("--key", help="the singleton key")
    parser.add_argument("--since", metavar="TIME", help=f"sent, or ended, since {_TIME}")
    parser.add_argument("--until", metavar="TIME", help="sent, or ended, before that")


def _add_confirmation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--yes", "-y", action="store_true", help="do not ask; exit with 1 if there is nothing to do"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print how many it would be, do nothing, and exit with 0"
    )
