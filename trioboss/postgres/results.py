"""Results of `run`: binary, read into Python values without a connection at hand. Instants are in UTC."""

from typing import Any

from psycopg.adapt import Transformer
from psycopg.pq.abc import PGresult

__all__ = ["PGresult", "read_rows"]


def read_rows(result: PGresult) -> list[tuple[Any, ...]]:
    """Return the rows of a result as tuples."""
    transformer = Transformer()
    transformer.set_pgresult(result)
    return transformer.load_rows(0, result.ntuples, tuple)
