"""How trioboss reaches Postgres. The only package that imports psycopg.

A request goes down this list, from an operation of the store to the socket; a module imports only modules below it
in the list or beside it:

migrate     operations that bring the schema to the version this program needs
executor    executes an operation: on the pool, on a caller's connection, or on a blocking connection
foreign     the psycopg connection inside of a Django connection or an SQLAlchemy session
pool        Pool: our own connections
caller      runs our transactions on a caller's connection, under trio
blocking    opens blocking connections, and runs our transactions on them
operation   what an operation can ask for: batches, savepoints, COPY
connection  one connection under trio: transactions of prepared statements, notifications, cancellation
settings    the run-time settings of our sessions, with the reason for each
wire        the wire protocol without waiting: pipelines of prepared statements, results
errors      error classification: what an error of psycopg means, and its translation into ours
dsn         connection strings: our defaults, and passwords kept out of sight
contract    the internals of psycopg that we rely on, checked at import

databases   creates and drops databases, for set-up code and tests
embedded    a server of our own, started on first use
"""

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
