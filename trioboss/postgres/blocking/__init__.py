"""Blocking connections: our own, a caller's, and those inside of other libraries. Nothing here needs trio.

executor  executes an operation on a blocking connection
unwrap    the psycopg connection inside of a Django connection or an SQLAlchemy session
session   opens our own connections, and runs our transactions on any
"""

from trioboss.postgres.blocking.executor import execute_blocking as execute_blocking
from trioboss.postgres.blocking.session import BlockingConnection as BlockingConnection
from trioboss.postgres.blocking.session import ConnectBlocking as ConnectBlocking
from trioboss.postgres.blocking.session import check_client_encoding as check_client_encoding
from trioboss.postgres.blocking.session import copy_in_blocking as copy_in_blocking
from trioboss.postgres.blocking.session import ensure_transaction_blocking as ensure_transaction_blocking
from trioboss.postgres.blocking.session import get_result as get_result
from trioboss.postgres.blocking.session import is_connected as is_connected
from trioboss.postgres.blocking.session import is_pooled as is_pooled
from trioboss.postgres.blocking.session import open_blocking as open_blocking
from trioboss.postgres.blocking.session import opens_implicitly as opens_implicitly
from trioboss.postgres.blocking.session import raw_values as raw_values
from trioboss.postgres.blocking.session import register_raw_value as register_raw_value
from trioboss.postgres.blocking.session import run_blocking as run_blocking
from trioboss.postgres.blocking.session import run_script_blocking as run_script_blocking
from trioboss.postgres.blocking.unwrap import ForeignConnection as ForeignConnection
from trioboss.postgres.blocking.unwrap import unwrap_blocking as unwrap_blocking
from trioboss.postgres.blocking.unwrap import unwrap_foreign as unwrap_foreign

__all__ = [
    "BlockingConnection",
    "ConnectBlocking",
    "ForeignConnection",
    "check_client_encoding",
    "copy_in_blocking",
    "ensure_transaction_blocking",
    "execute_blocking",
    "get_result",
    "is_connected",
    "is_pooled",
    "open_blocking",
    "opens_implicitly",
    "raw_values",
    "register_raw_value",
    "run_blocking",
    "run_script_blocking",
    "unwrap_blocking",
    "unwrap_foreign",
]
