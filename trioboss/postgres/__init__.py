"""How trioboss reaches Postgres. The only package that imports psycopg.

waiting     drives libpq's conversations by trio's means
care, lock  what a cancellation may interrupt, and who talks on a connection
flush       the conversation of the hot path
connection  Connection: psycopg's, under trio, and `run`
session     our own sessions; their settings and the reasons are in `settings`
pool        Pool
blocking    the same transactions on a blocking connection
caller      the same transactions on the caller's connection
translate   psycopg's errors into ours
contract    what we rely on inside psycopg
"""

from trioboss.postgres.blocking import run_blocking as run_blocking
from trioboss.postgres.caller import run_in_caller as run_in_caller
from trioboss.postgres.connection import Connection as Connection
from trioboss.postgres.contract import check_contract as check_contract
from trioboss.postgres.flush import Results as Results
from trioboss.postgres.flush import Step as Step
from trioboss.postgres.flush import Transactions as Transactions
from trioboss.postgres.pool import CloseReason as CloseReason
from trioboss.postgres.pool import Pool as Pool
from trioboss.postgres.pool import PoolStatistics as PoolStatistics
from trioboss.postgres.pool import open_pool as open_pool
from trioboss.postgres.session import open_connection as open_connection
from trioboss.postgres.session import open_session as open_session
from trioboss.postgres.translate import translated as translated

__all__ = [
    "CloseReason",
    "Connection",
    "Pool",
    "PoolStatistics",
    "Results",
    "Step",
    "Transactions",
    "check_contract",
    "open_connection",
    "open_pool",
    "open_session",
    "run_blocking",
    "run_in_caller",
    "translated",
]
