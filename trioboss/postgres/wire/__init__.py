"""The wire protocol: what is sent to the server and read from it, without any waiting.

statements  a statement with its parameters, and the names under which a session has prepared its statements
pipeline    transactions of prepared statements in one round trip, as a generator that yields before it would block
results     Python values from results in the binary format
copy_out    the rows of a query by COPY, in the binary format
"""

from trioboss.postgres.wire.pipeline import Pipeline as Pipeline
from trioboss.postgres.wire.statements import BoundStatement as BoundStatement
from trioboss.postgres.wire.statements import PreparedStatements as PreparedStatements
from trioboss.postgres.wire.statements import Results as Results
from trioboss.postgres.wire.statements import Transactions as Transactions

__all__ = ["BoundStatement", "Pipeline", "PreparedStatements", "Results", "Transactions"]
