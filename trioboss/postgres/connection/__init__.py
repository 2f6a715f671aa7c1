"""One connection to the server, under trio.

connection    Connection: transactions of prepared statements, notifications and health checks
session       opens connections for our own use, with our settings
hosts         resolves the hosts of a dsn and connects to the first that accepts
psycopg_trio  TrioConnection: psycopg's AsyncConnection with trio's waiting, cancellation and locking
cursor        psycopg's cursors, whose clean-up works in a cancelled scope
waiting       waits for sockets, and runs psycopg's generators
cancellation  what a cancelled scope means for an operation on a connection
"""

from trioboss.postgres.connection.connection import Connection as Connection
from trioboss.postgres.connection.session import Connect as Connect
from trioboss.postgres.connection.session import is_behind_pooler as is_behind_pooler
from trioboss.postgres.connection.session import open_connection as open_connection
from trioboss.postgres.connection.session import open_session as open_session

__all__ = ["Connect", "Connection", "is_behind_pooler", "open_connection", "open_session"]
