"""The wire protocol: what is sent to the server and read from it, without any waiting.

pipeline    transactions of prepared statements in one round trip, and the values in their results
copy_out    the rows of a query by COPY, in the binary format
"""

from trioboss.postgres.wire.pipeline import BoundStatement as BoundStatement
from trioboss.postgres.wire.pipeline import PGresult as PGresult
from trioboss.postgres.wire.pipeline import Pipeline as Pipeline
from trioboss.postgres.wire.pipeline import PreparedStatements as PreparedStatements
from trioboss.postgres.wire.pipeline import Results as Results
from trioboss.postgres.wire.pipeline import Transactions as Transactions
from trioboss.postgres.wire.pipeline import read_row as read_row
from trioboss.postgres.wire.pipeline import read_rows as read_rows

__all__ = [
    "BoundStatement",
    "PGresult",
    "Pipeline",
    "PreparedStatements",
    "Results",
    "Transactions",
    "read_row",
    "read_rows",
]
