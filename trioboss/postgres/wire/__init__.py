"""The wire protocol: what is sent to the server and read from it, without any waiting.

pipeline    transactions of prepared statements in one round trip, and the values in their results
binary      parameters in the binary format
copy_out    the rows of a query by COPY, in the binary format
"""

from trioboss.postgres.wire.binary import BinaryParameter as BinaryParameter
from trioboss.postgres.wire.binary import instant_array as instant_array
from trioboss.postgres.wire.binary import int4_array as int4_array
from trioboss.postgres.wire.binary import uuid_array as uuid_array
from trioboss.postgres.wire.pipeline import BoundStatement as BoundStatement
from trioboss.postgres.wire.pipeline import PGresult as PGresult
from trioboss.postgres.wire.pipeline import Pipeline as Pipeline
from trioboss.postgres.wire.pipeline import PreparedStatements as PreparedStatements
from trioboss.postgres.wire.pipeline import Results as Results
from trioboss.postgres.wire.pipeline import Transactions as Transactions
from trioboss.postgres.wire.pipeline import read_row as read_row
from trioboss.postgres.wire.pipeline import read_rows as read_rows

__all__ = [
    "BinaryParameter",
    "BoundStatement",
    "PGresult",
    "Pipeline",
    "PreparedStatements",
    "Results",
    "Transactions",
    "instant_array",
    "int4_array",
    "read_row",
    "read_rows",
    "uuid_array",
]
