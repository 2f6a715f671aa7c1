"""A pool of our sessions.

pool    Pool: check-out, check-in, and closing of connections that are no longer needed
member  a connection of a pool: opened with retries, reset for its next user, and closed for a reason
"""

from trioboss.postgres.pool.member import CloseReason as CloseReason
from trioboss.postgres.pool.member import PoolSettings as PoolSettings
from trioboss.postgres.pool.member import PoolStatistics as PoolStatistics
from trioboss.postgres.pool.pool import Pool as Pool
from trioboss.postgres.pool.pool import open_pool as open_pool

__all__ = ["CloseReason", "Pool", "PoolSettings", "PoolStatistics", "open_pool"]
