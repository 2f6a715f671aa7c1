"""The internals of psycopg that trioboss relies on, checked at import and by a test.

psycopg documents none of this. An incompatible version is refused when it is imported, and not in production.

1. All I/O of AsyncConnection, AsyncCursor, AsyncServerCursor, AsyncTransaction, AsyncPipeline and AsyncCopy
   is `await connection.wait(gen)`, where gen yields Wait.R, W or RW and is sent Ready flags.
2. Their only synchronization between tasks is `async with connection.lock`.
3. They use asyncio only in the methods that `Connection` overrides.
4. A stream or COPY that is left early calls `connection._try_cancel()` and then reads to the end.
5. A connection is made from a PGconn, and has `_autocommit`, `_adapters`, `_notifies_backlog`, `_pipeline`.
6. An implicit BEGIN is `_get_tx_start_command()`; every DEALLOCATE is `_deallocate(name)`, where None means all.
"""

import inspect
from collections.abc import Callable, Iterator
from types import CodeType

import psycopg
from psycopg import (
    AsyncConnection,
    AsyncCopy,
    AsyncCursor,
    AsyncPipeline,
    AsyncServerCursor,
    AsyncTransaction,
    generators,
)
from psycopg.conninfo import conninfo_attempts, timeout_from_conninfo
from psycopg.waiting import Ready, Wait

__all__ = ["check_contract"]

# 3.3.6, a patch release, changed wait() and the generators for connecting and cancelling, so a minor version is refused
# until its tests have passed here.
_SUPPORTED = ((3, 3, 6), (3, 4))
_REUSED = (AsyncConnection, AsyncCursor, AsyncServerCursor, AsyncTransaction, AsyncPipeline, AsyncCopy)
_OVERRIDDEN = frozenset({"connect", "wait", "cancel_safe", "notifies"})
# The names through which psycopg's code reaches asyncio: the module itself, and psycopg's functions that use it.
_ASYNCIO = frozenset({"asyncio", "waiting", "conninfo_attempts_async", "get_running_loop", "to_thread"})
_SIGNATURES: tuple[tuple[Callable[..., object], tuple[str, ...]], ...] = (
    (AsyncConnection.__init__, ("self", "pgconn", "row_factory")),
    (AsyncConnection.wait, ("self", "gen", "interval", "timeout")),
    (AsyncConnection._try_cancel, ("self", "timeout")),
    (AsyncConnection._should_cancel, ("self",)),
    (AsyncConnection._deallocate, ("self", "name")),
    (AsyncConnection._get_tx_start_command, ("self",)),
    (AsyncConnection._pipeline_nolock, ("self",)),
    (timeout_from_conninfo, ("params",)),
    (conninfo_attempts, ("params",)),
)


def check_contract() -> None:
    """Raise ImportError with all differences if this psycopg does not fulfil the contract."""
    problems = [*_version(), *_signatures(), *_values(), *_asyncio_in_use(), *_internals()]
    if problems:
        raise ImportError(
            f"trioboss cannot use psycopg {psycopg.__version__}: {'; '.join(problems)}; "
            "install a version that trioboss supports: pip install 'psycopg>=3.3.6,<3.4'"
        )


def _version() -> Iterator[str]:
    found = tuple(int(part) for part in psycopg.__version__.split(".")[:3] if part.isdigit())
    if not _SUPPORTED[0] <= found < _SUPPORTED[1]:
        yield "its version is not in 3.3.6 to 3.3.x"


def _signatures() -> Iterator[str]:
    for function, expected in _SIGNATURES:
        found = tuple(inspect.signature(function).parameters)
        if found != expected:
            yield f"{function.__qualname__} takes {found} instead of {expected}"


def _values() -> Iterator[str]:
    if (int(Wait.R), int(Wait.W), int(Wait.RW)) != (1, 2, 3) or (int(Ready.R), int(Ready.W)) != (1, 2):
        yield "the enums Wait and Ready have other values"
    for name in ("execute", "send", "fetch_many"):
        if not callable(getattr(generators, name, None)):
            yield f"generators.{name} does not exist"


def _asyncio_in_use() -> Iterator[str]:
    # The names in the compiled code are compared, so that a use of asyncio is found without executing it.
    for cls in _REUSED:
        for name, member in vars(cls).items():
            if cls is AsyncConnection and name in _OVERRIDDEN:
                continue
            for code in _codes(member):
                if used := _ASYNCIO.intersection(code.co_names):
                    yield f"{cls.__name__}.{name} uses {', '.join(sorted(used))}"


def _codes(member: object) -> Iterator[CodeType]:
    """Yield the code objects of a member of a class, and of the functions nested in it."""
    function = inspect.unwrap(member) if callable(member) else getattr(member, "__func__", None)
    code = getattr(function, "__code__", None)
    stack = [code] if code is not None else []
    while stack:
        code = stack.pop()
        yield code
        stack += [const for const in code.co_consts if inspect.iscode(const)]


def _internals() -> Iterator[str]:
    # The other writer of psycopg, AsyncQueuedLibpqWriter, starts an asyncio task.
    writers = AsyncCopy.__init__.__code__.co_names
    if "AsyncLibpqWriter" not in writers or "AsyncQueuedLibpqWriter" in writers:
        yield "AsyncCopy uses another writer by default"
    expected: tuple[tuple[Callable[..., object], str], ...] = (
        (AsyncConnection._notify_handler, "_notifies_backlog"),
        (AsyncConnection._start_query, "_get_tx_start_command"),
        (AsyncConnection._start_query, "_autocommit"),
        (AsyncCopy.finish, "_try_cancel"),
        (inspect.unwrap(AsyncCursor.stream), "_try_cancel"),
    )
    for function, name in expected:
        if all(name not in code.co_names for code in _codes(function)):
            yield f"{function.__qualname__} does not use {name}"
