"""Every exception that trioboss raises, by who has to act.

TriobossError
├── UsageError (also a ValueError)    you: fix the call
│   ├── UnknownQueue
│   ├── QueueExists
│   ├── QueueInUse
│   ├── PayloadError
│   └── BossClosed                    the boss has ended: open another one
├── JobNotFound                       you, or another process was faster: no such job in that state
├── LeaseLost                         the attempt is over: stop working on the job
├── DataMismatch                      the producer: the data of a job does not fit what its worker declares
├── BatchFailed                       your handler: some jobs of a batch failed
├── DatabaseUnavailable               the database or the network: try again later
│   ├── PoolTimeout
│   ├── QueueBusy
│   ├── QueueChanged
│   ├── ServerDown
│   └── OutcomeUnknown
├── StatementFailed                   you or the operator: Postgres refused a statement, its message says why
├── SchemaOutOfDate                   the operator: run `trioboss migrate`
├── NoPostgres                        the operator: install or name a Postgres
└── SupervisorGaveUp                  an actor crashed too often: its last crash says why

docs/reference/errors.md has the causes of each, and the remedies. The note of an error, which tracebacks show, has the
address of its section there.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from uuid import UUID

PAGE = "https://github.com/trioboss/trioboss/blob/main/docs/reference/errors.md"
HELP_NOTE = f"causes and remedies: {PAGE}"
"""The beginning of a note of every error, which Python prints below its message in a traceback: see `help_note`."""

__all__ = [
    "BatchFailed",
    "BossClosed",
    "DataMismatch",
    "DatabaseUnavailable",
    "JobNotFound",
    "LeaseLost",
    "NoPostgres",
    "OutcomeUnknown",
    "PayloadError",
    "PoolTimeout",
    "QueueBusy",
    "QueueChanged",
    "QueueExists",
    "QueueInUse",
    "SchemaOutOfDate",
    "ServerDown",
    "StatementFailed",
    "SupervisorGaveUp",
    "TriobossError",
    "UnknownQueue",
    "UsageError",
]


def _listed(ids: Sequence[UUID]) -> str:
    """The first few ids; all of them are in the attribute `ids`."""
    more = f" and {len(ids) - 5} more" if len(ids) > 5 else ""
    return ", ".join(map(str, ids[:5])) + more


def help_note(kind: type[BaseException]) -> str:
    """The note of an error: the address of its section, or that of the nearest of its base classes that has one."""
    name = next(each.__name__ for each in kind.__mro__ if each.__module__ == __name__)
    return f"{HELP_NOTE}#{name.lower()}"


def _shown(value: object) -> str:
    """A value of an option as it is written: of an enum the text, and not its repr."""
    return repr(value.value if isinstance(value, Enum) else value)


class TriobossError(Exception):
    """The base class of all trioboss errors. It is abstract."""

    def __init__(self, *args: object) -> None:
        if type(self) is TriobossError:
            raise TypeError("TriobossError is abstract: raise one of its subclasses")
        super().__init__(*args)
        self.add_note(help_note(type(self)))


class UsageError(TriobossError, ValueError):
    """The call cannot work as written. The message names the argument and what it accepts."""


class UnknownQueue(UsageError):
    """There is no queue of that name: create it with `create_queue` first."""

    def __init__(self, queue: str, *, dead_letter_of: str | None = None) -> None:
        remedy = (
            f"create it first, with create_queue({queue!r}), `trioboss create-queue {queue}`, or `trioboss migrate "
            "MODULE:APP` for all queues of its app; where roles are separate, as the admin"
        )
        role = "" if dead_letter_of is None else f", the dead letter queue of {dead_letter_of!r},"
        if queue.startswith("__state__completed__"):
            source = queue.removeprefix("__state__completed__")
            remedy = f"call fetch_completed or on_complete for {source!r} first"
        super().__init__(f"queue {queue!r}{role} does not exist: {remedy}")
        self.queue = queue


class QueueExists(UsageError):
    """The queue exists with other options: change them with `update_queue`, if they can be changed."""

    def __init__(self, queue: str, differing: Mapping[str, tuple[object, object]]) -> None:
        listed = ", ".join(
            f"{k} is {_shown(was)}, not {_shown(asked)}" for k, (was, asked) in differing.items()
        )
        fixed = [name for name in ("policy", "partition") if name in differing]
        remedy = f"delete it first, {' and '.join(fixed)} cannot be changed" if fixed else "use update_queue"
        super().__init__(f"queue {queue!r} exists with other options ({listed}): {remedy}")
        self.queue = queue
        self.differing: dict[str, tuple[object, object]] = dict(differing)


class QueueInUse(UsageError):
    """The queue cannot be deleted while other queues, or jobs in them, name it as their dead letter queue."""

    def __init__(self, queue: str, users: Sequence[str], *, by_jobs: bool = False) -> None:
        listed = ", ".join(map(repr, users))
        of, remedy = ("jobs in ", "let them end") if by_jobs else ("", "update those")
        super().__init__(f"queue {queue!r} is the dead letter queue of {of}{listed}: {remedy} first")
        self.queue = queue
        self.users: tuple[str, ...] = tuple(users)


class PayloadError(UsageError):
    """A value that JSON in Postgres would not return exactly as it was sent, or that does not fit the type that its
    worker declares. Nothing was sent.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class BossClosed(UsageError):
    """The boss has ended: its block was left, or it is being left. Open another one."""

    def __init__(self, message: str = "this boss has ended: open another one") -> None:
        super().__init__(message)


class DataMismatch(TriobossError):
    """The data of a job does not fit the type that its worker declares. The job fails without retries."""

    def __init__(self, queue: str, id: UUID, expected: str, path: str, problem: str) -> None:
        super().__init__(f"job {id} in queue {queue!r} does not fit {expected}: {path}: {problem}")
        self.queue = queue
        self.id = id
        self.expected = expected
        self.path = path
        """The field that does not fit, for instance ``data.to``."""
        self.problem = problem


class JobNotFound(TriobossError):
    """No job of that id, or of that key, is in a state that the call applies to."""

    def __init__(
        self, queue: str, ids: Sequence[UUID], wanted: str, *, taken: bool = False, key: object = None
    ) -> None:
        named = _listed(ids) if key is None else f"with key {key!r}"
        found = f"no {wanted} job {named} in queue {queue!r}"
        if wanted == "such":  # and not one in another state
            found += ": it may have been deleted"
        refused = f"{found} that the queue's policy admits: another one is queued or active"
        super().__init__(refused if taken else found)
        self.queue = queue
        self.ids: tuple[UUID, ...] = tuple(ids)


class LeaseLost(TriobossError):
    """The attempt is over: the job expired, was cancelled, or runs elsewhere. Nothing was written."""

    def __init__(self, queue: str, ids: Sequence[UUID]) -> None:
        super().__init__(
            f"the lease of job {_listed(ids)} in queue {queue!r} is lost: nothing was written for it"
        )
        self.queue = queue
        self.ids: tuple[UUID, ...] = tuple(ids)


class BatchFailed(TriobossError):
    """Raised by a batch handler: the jobs named here failed, the others completed."""

    def __init__(self, errors: Mapping[UUID, object]) -> None:
        super().__init__(f"{len(errors)} of the batch failed: {_listed(list(errors))}")
        self.errors: dict[UUID, object] = dict(errors)


class DatabaseUnavailable(TriobossError):
    """Postgres cannot be reached now. The cause is the driver's error; the call can be repeated later."""


class PoolTimeout(DatabaseUnavailable):
    """No connection became free in time: raise ``pool_size``, or hold connections for shorter."""


class QueueBusy(DatabaseUnavailable):
    """An open transaction uses the tables that the call has to change. Nothing was changed."""

    def __init__(self, queue: str, wanted: str) -> None:
        super().__init__(
            f"queue {queue!r} cannot be {wanted} now: an open transaction uses the tables of the jobs; "
            "end it, and try again"
        )
        self.queue = queue


class QueueChanged(DatabaseUnavailable):
    """The queue was deleted or created again while the call was under way. Nothing was written: repeat the call, and
    with ``conn`` the transaction.
    """

    def __init__(self, queue: str) -> None:
        super().__init__(
            f"queue {queue!r} was deleted or created again while the call was under way: repeat it"
        )
        self.queue = queue


class ServerDown(DatabaseUnavailable):
    """No server runs at that address, or it is starting or stopping: nobody else can be connected to it either."""


class OutcomeUnknown(DatabaseUnavailable):
    """The connection broke while a commit was under way: it may or may not have happened.

    A `send` with an ``id`` of your own can be repeated: sending the same id twice makes one job.
    """


class StatementFailed(TriobossError):
    """Postgres refused a statement, and repeating it does not help: a missing right, a trigger of yours, a transaction
    that had failed before. The cause is the driver's error.
    """

    def __init__(self, message: str, sqlstate: str | None = None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class SchemaOutOfDate(TriobossError):
    """The schema in the database is missing, older or newer than this program needs."""

    def __init__(
        self, schema: str, found: int | None, needed: int, *, exists: bool = True, refused: bool = False
    ) -> None:
        remedy = "run `trioboss migrate`"
        if not exists:
            state, remedy = "does not exist", f'create it first (CREATE SCHEMA "{schema}")'
        elif found is None:
            state = "is not installed"
        elif found < needed:
            state = f"is at version {found}, {needed} is needed"
        else:
            state, remedy = f"is at version {found}, newer than {needed}", "upgrade trioboss"
        if refused:
            owner = "may create it" if found is None else "owns it"
            state += ", and this database role may not change that"
            remedy += f" as a role that {owner}"
        super().__init__(f"schema {schema!r} {state}: {remedy}")
        self.schema = schema
        self.found = found
        self.needed = needed


class NoPostgres(TriobossError):
    """No server is configured, and none can be started here. The message says what to install."""


class SupervisorGaveUp(TriobossError):
    """An actor has crashed more often than its restart intensity allows. The cause is its last crash."""
