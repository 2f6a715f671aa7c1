"""A pool of our sessions.

pool    Pool: check-out, check-in, and closing of connections that are no longer needed
member  a connection of a pool: opened with retries, and reset for its next user
values  the settings and statistics of a pool, and its reasons to close a connection
"""

from trioboss.postgres.pool.pool import Pool as Pool
from trioboss.postgres.pool.pool import open_pool as open_pool
from trioboss.postgres.pool.values import CloseReason as CloseReason
from trioboss.postgres.pool.values import PoolSettings as PoolSettings
from trioboss.postgres.pool.values import PoolStatistics as PoolStatistics

__all__ = ["CloseReason", "Pool", "PoolSettings", "PoolStatistics", "open_pool"]
