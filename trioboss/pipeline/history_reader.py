"""Reads history in the tasks of a query: each task one share, all of them as of one instant."""

from collections.abc import Callable, Iterator
from uuid import UUID, uuid4

import attrs
import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from trioboss.pipeline.chunks import Chunk, ChunkReader
from trioboss.pipeline.database import Database, open_database
from trioboss.pipeline.decoding import decode
from trioboss.pipeline.options import ReadOptions
from trioboss.pipeline.planning import Share, list_day_tables, pieces_of, plan_shares
from trioboss.pipeline.prefetch import prefetch
from trioboss.pipeline.query import Query
from trioboss.pipeline.registration import ReadRegistration, execution_of_task

__all__ = ["HistoryReader", "SharePartition", "decode_chunks"]


def decode_chunks(
    read: Callable[[], Iterator[Chunk]], schema: StructType, query: Query
) -> Iterator[pa.RecordBatch]:
    """The chunks of a query as Arrow. While one is decoded and used by Spark, the next is fetched."""
    arrow = to_arrow_schema(schema, timezone="UTC")
    for chunk in prefetch(read):
        while chunk:
            yield decode(chunk.pop(0), arrow, query.uuids)  # each part is released once it is decoded


class SharePartition(InputPartition):
    """A share of history for one task, of the rows of a range of transactions if ``xids`` is given.

    ``plan`` is an id by which the tasks of a query find each other; None: they cannot register, and there is one task.
    """

    def __init__(self, share: Share, plan: UUID | None, xids: tuple[int, int] | None) -> None:
        super().__init__(share.number)
        self.share: Share = share
        self.plan: UUID | None = plan
        self.xids: tuple[int, int] | None = xids


@attrs.frozen
class HistoryReader:
    """One history table, as the options and the schema ask for it. Spark sends it to tasks."""

    _options: ReadOptions
    _query: Query
    _schema: StructType

    def plan(self, xids: tuple[int, int] | None) -> list[InputPartition]:
        """Divide the table, or the rows of a range of transactions, among tasks. On the driver."""
        options, plan = self._options, uuid4()
        with open_database(options.dsn, options.schema) as database:
            if not self._registration(database, plan).can_register():
                # The tasks of a query could not agree on a snapshot, so one task reads everything.
                return [SharePartition(Share.everything(), None, xids)]
            tables = list_day_tables(database, self._query.table.name, options.days)
            shares = plan_shares(database, tables, options.partitions, options.chunk_rows, xids)
        return [SharePartition(share, plan, xids) for share in shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one share. In a task."""
        assert isinstance(partition, SharePartition)
        # A task reads its query from Spark's context, which is that of the thread in which it runs.
        execution = None if partition.plan is None else execution_of_task(partition.plan)
        return decode_chunks(lambda: self._read_chunks(partition, execution), self._schema, self._query)

    def _read_chunks(self, partition: SharePartition, execution: UUID | None) -> Iterator[Chunk]:
        options = self._options
        with open_database(options.dsn, options.schema) as database:
            registration = self._registration(database, execution or uuid4())
            agreement = registration.observe() if execution is None else registration.register()
            # After the agreement: the rows that its snapshot shows are in blocks that exist by now.
            tables = list_day_tables(database, self._query.table.name, options.days)
            agreement.check(tables, options.days)
            query = self._query.as_of(agreement.snapshot)
            if partition.xids is not None:
                query = query.within(*partition.xids)
            chunks = ChunkReader(database, options, query, registration.renew)
            for piece in pieces_of(database, partition.share, tables, agreement.newest):
                yield from chunks.read(piece)

    def _registration(self, database: Database, execution: UUID) -> ReadRegistration:
        options = self._options
        return ReadRegistration(database, self._query.table.name, options.days, execution, options.snapshot)
