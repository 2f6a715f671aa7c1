"""How trioboss reaches Postgres. The only package that imports psycopg.

waiting       libpq's dialogues, driven by trio's means of waiting
care, lock    what a cancellation may interrupt, and who talks on a connection
driver        psycopg's connection under trio; cursor is its cursors
flush         the hot path: transactions of prepared statements in one flush
connection    Connection: all that, with notifications and health
connecting    from a dsn to a libpq connection
session       our own sessions; settings has what they are set to, and why
pool          Pool
blocking      the same transactions on a blocking connection
caller        the same transactions on a caller's connection
conversation  how a verb asks for all this without waiting; driving answers it
migrate       brings a schema up to date
embedded      a server of our own; databases makes databases in one
results       rows from binary results; verdicts says what an error means to a verb
translate     psycopg's errors into ours; redact keeps passwords out of sight
contract      what we rely on inside psycopg
"""

from trioboss.postgres.blocking import run_blocking as run_blocking
from trioboss.postgres.caller import run_in_caller as run_in_caller
from trioboss.postgres.connection import Connection as Connection
from trioboss.postgres.contract import check_contract as check_contract
from trioboss.postgres.pool import CloseReason as CloseReason
from trioboss.postgres.pool import Pool as Pool
from trioboss.postgres.pool import PoolStatistics as PoolStatistics
from trioboss.postgres.pool import open_pool as open_pool
from trioboss.postgres.session import open_connection as open_connection
from trioboss.postgres.session import open_session as open_session
from trioboss.postgres.translate import translated as translated
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
    "translated",
]
