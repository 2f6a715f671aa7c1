"""How trioboss reaches Postgres. The only package that imports psycopg.

A request goes down this list, from an operation of the store to the socket; a module imports only modules below it
in the list or beside it:

migrate     operations that bring the schema to the version this program needs
executor    executes an operation under trio: on the pool, or on a caller's connection
pool        Pool: our own connections
caller      the connections that a call under trio accepts, and our transactions on them
blocking    blocking connections: executes operations on them, and opens our own
operation   what an operation can ask for: batches, savepoints, COPY
connection  one connection under trio: transactions of prepared statements, notifications, cancellation
settings    the run-time settings of our sessions, with the reason for each
wire        the wire protocol without waiting: pipelines of prepared statements, results
errors      error classification: what an error of psycopg means, and its translation into ours
dsn         connection strings: our defaults, and passwords kept out of sight
contract    the internals of psycopg that we rely on, checked at import

databases   creates and drops databases, for set-up code and tests
embedded    a server of our own, started on first use

Nothing is imported before one of these names is used: blocking programs do without trio, which takes long to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trioboss.postgres.blocking import run_blocking as run_blocking
    from trioboss.postgres.caller import run_in_caller as run_in_caller
    from trioboss.postgres.connection import Connection as Connection
    from trioboss.postgres.connection import open_connection as open_connection
    from trioboss.postgres.connection import open_session as open_session
    from trioboss.postgres.contract import check_contract as check_contract
    from trioboss.postgres.errors import translate_errors as translate_errors
    from trioboss.postgres.pool import CloseReason as CloseReason
    from trioboss.postgres.pool import Pool as Pool
    from trioboss.postgres.pool import PoolStatistics as PoolStatistics
    from trioboss.postgres.pool import open_pool as open_pool
    from trioboss.postgres.wire import BoundStatement as BoundStatement
    from trioboss.postgres.wire import Results as Results
    from trioboss.postgres.wire import Transactions as Transactions

__all__ = [
    "BoundStatement",
    "CloseReason",
    "Connection",
    "Pool",
    "PoolStatistics",
    "Results",
    "Transactions",
    "check_contract",
    "open_connection",
    "open_pool",
    "open_session",
    "run_blocking",
    "run_in_caller",
    "translate_errors",
]

_HOMES = {
    "run_blocking": "blocking",
    "run_in_caller": "caller",
    "Connection": "connection",
    "open_connection": "connection",
    "open_session": "connection",
    "check_contract": "contract",
    "translate_errors": "errors",
    "CloseReason": "pool",
    "Pool": "pool",
    "PoolStatistics": "pool",
    "open_pool": "pool",
    "BoundStatement": "wire",
    "Results": "wire",
    "Transactions": "wire",
}

if not TYPE_CHECKING:  # a type checker that sees it takes every name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
