"""Every exception trioboss raises, by whose fault it is.

TriobossError
├── UsageError (also a ValueError)    you: fix the call
│   ├── UnknownQueue
│   ├── QueueExists
│   ├── QueueInUse
│   └── PayloadError
├── JobNotFound                       you, or somebody who was faster: no such job in that state
├── LeaseLost                         somebody else owns the job now: stop working on it
├── BatchFailed                       your handler: some jobs of a batch failed
├── DatabaseUnavailable               the world: try again later
│   ├── PoolTimeout
│   ├── QueueBusy
│   └── OutcomeUnknown
├── SchemaOutOfDate                   the operator: run `trioboss migrate`
├── NoPostgres                        the operator: install or name a Postgres
└── SupervisorGaveUp                  an actor crashed too often: its last crash says why
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

__all__ = [
    "BatchFailed",
    "DatabaseUnavailable",
    "JobNotFound",
    "LeaseLost",
    "NoPostgres",
    "OutcomeUnknown",
    "PayloadError",
    "PoolTimeout",
    "QueueBusy",
    "QueueExists",
    "QueueInUse",
    "SchemaOutOfDate",
    "SupervisorGaveUp",
    "TriobossError",
    "UnknownQueue",
    "UsageError",
]


def _listed(ids: Sequence[UUID]) -> str:
    """The first few; a program finds all of them in `ids`."""
    more = f" and {len(ids) - 5} more" if len(ids) > 5 else ""
    return ", ".join(map(str, ids[:5])) + more


class TriobossError(Exception):
    """The root of all trioboss errors. Raise one of its children."""

    def __init__(self, *args: object) -> None:
        if type(self) is TriobossError:
            raise TypeError("TriobossError is abstract: raise the child that says whose fault it is")
        super().__init__(*args)


class UsageError(TriobossError, ValueError):
    """The call cannot work as written. The message names the argument and what it accepts."""


class UnknownQueue(UsageError):
    """There is no queue of that name: create it with `create_queue` first."""

    def __init__(self, queue: str) -> None:
        remedy = f"create it with create_queue({queue!r})"
        if queue.startswith("__state__completed__"):
            remedy = (
                f"fetch_completed or on_complete of {queue.removeprefix('__state__completed__')!r} makes it"
            )
        super().__init__(f"queue {queue!r} does not exist: {remedy}")
        self.queue = queue


class QueueExists(UsageError):
    """The queue exists with other options: change them with `update_queue`, if they can be changed."""

    def __init__(self, queue: str, differing: Mapping[str, tuple[object, object]]) -> None:
        listed = ", ".join(f"{k} is {was!r}, not {asked!r}" for k, (was, asked) in differing.items())
        fixed = [name for name in ("policy", "partition") if name in differing]
        remedy = f"delete it first, {' and '.join(fixed)} cannot be changed" if fixed else "use update_queue"
        super().__init__(f"queue {queue!r} exists with other options ({listed}): {remedy}")
        self.queue = queue
        self.differing = dict(differing)


class QueueInUse(UsageError):
    """The queue cannot be deleted while other queues, or jobs in them, name it as their dead letter queue."""

    def __init__(self, queue: str, users: Sequence[str], *, by_jobs: bool = False) -> None:
        listed = ", ".join(map(repr, users))
        of, remedy = ("jobs in ", "let them end") if by_jobs else ("", "update those")
        super().__init__(f"queue {queue!r} is the dead letter queue of {of}{listed}: {remedy} first")
        self.queue = queue
        self.users = tuple(users)


class PayloadError(UsageError):
    """A value that JSON in Postgres cannot give back exactly as it was sent."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class JobNotFound(TriobossError):
    """No job of that id is in a state that the call applies to."""

    def __init__(self, queue: str, ids: Sequence[UUID], wanted: str, *, taken: bool = False) -> None:
        found = f"no {wanted} job {_listed(ids)} in queue {queue!r}"
        super().__init__(f"{found} whose place is free: others wait or run in it" if taken else found)
        self.queue = queue
        self.ids = tuple(ids)


class LeaseLost(TriobossError):
    """The attempt is over: the job expired, was cancelled, or runs elsewhere. Nothing was written."""

    def __init__(self, queue: str, ids: Sequence[UUID]) -> None:
        super().__init__(
            f"the lease of job {_listed(ids)} in queue {queue!r} is lost: nothing was written for it"
        )
        self.queue = queue
        self.ids = tuple(ids)


class BatchFailed(TriobossError):
    """Raised by a batch handler: the jobs named here failed, the others completed."""

    def __init__(self, errors: Mapping[UUID, object]) -> None:
        super().__init__(f"{len(errors)} of the batch failed: {_listed(list(errors))}")
        self.errors = dict(errors)


class DatabaseUnavailable(TriobossError):
    """Postgres cannot be reached right now. The cause is the driver's error; trying again is right."""


class PoolTimeout(DatabaseUnavailable):
    """No connection became free in time: raise `pool_size`, or hold connections for shorter."""


class QueueBusy(DatabaseUnavailable):
    """A transaction left open is using the tables that the call has to change. Nothing was changed."""

    def __init__(self, queue: str, wanted: str) -> None:
        super().__init__(
            f"queue {queue!r} cannot be {wanted} now: a transaction left open uses the tables of the jobs; "
            "let it end, and try again"
        )
        self.queue = queue


class OutcomeUnknown(DatabaseUnavailable):
    """The connection broke while a commit was under way: it may or may not have happened.

    A `send` with an `id` of your own can simply be repeated: the same id twice is one job.
    """


class SchemaOutOfDate(TriobossError):
    """The schema in the database is missing, older or newer than this program needs."""

    def __init__(self, schema: str, found: int | None, needed: int) -> None:
        if found is None:
            state, remedy = "is not installed", "run `trioboss migrate`"
        elif found < needed:
            state, remedy = f"is at version {found}, {needed} is needed", "run `trioboss migrate`"
        else:
            state, remedy = f"is at version {found}, newer than {needed}", "upgrade trioboss"
        super().__init__(f"schema {schema!r} {state}: {remedy}")
        self.schema = schema
        self.found = found
        self.needed = needed


class NoPostgres(TriobossError):
    """No server was named and none can be started here. The message says what to install."""


class SupervisorGaveUp(TriobossError):
    """An actor crashed more often than its restart intensity allows. The cause is its last crash."""
