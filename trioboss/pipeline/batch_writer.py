"""The sink: `df.write.format("trioboss")` puts the rows of any DataFrame into a queue, each once.

Tasks stage their rows (`staging`); the driver releases all stages in one commit (`releasing`). Rows that a failed
or a second attempt of a task has staged are never released. A load that was released before is not staged again.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from trioboss.errors import UsageError
from trioboss.model.policy import Policy
from trioboss.pipeline.database import open_database
from trioboss.pipeline.ids import Ids
from trioboss.pipeline.options import WriteOptions
from trioboss.pipeline.releasing import drop_stages, find_load, find_queue, release
from trioboss.pipeline.rows import Shape
from trioboss.pipeline.staging import Staged, stage_rows

__all__ = ["BatchWriter"]


@attrs.frozen
class _Message(WriterCommitMessage):
    staged: Staged


def _task_number() -> int:
    task = TaskContext.get()
    return 0 if task is None else task.partitionId()


class BatchWriter(DataSourceArrowWriter):
    """One load."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise UsageError("mode: jobs can only be appended: use .mode('append')")
        with open_database(options.dsn, options.schema) as database:
            queue = find_queue(database, options.queue)
            load = find_load(database, options.load)
        if load is not None and load.state == "released" and load.queue != options.queue:
            raise UsageError(f"loadId: {load.id!r} was loaded into the queue {load.queue!r}")
        self._done = load is not None and load.state == "released"
        self._shape = Shape.of(schema, queue.policy is Policy.KEY_STRICT_FIFO)
        self._options = attrs.evolve(options, has_ids=self._shape.has_ids)
        self._began = time.time()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage what one task has."""
        if self._done:
            return _Message(Staged("", 0))
        ids = Ids.of_task(self._began, _task_number())
        return _Message(stage_rows(self._options, self._shape, iterator, ids))

    def commit(self, messages: Sequence[Any]) -> None:
        """Release what all tasks staged, in the order of the DataFrame's partitions."""
        release(self._options, [message.staged for message in messages if message is not None])

    def abort(self, messages: Sequence[Any]) -> None:
        """Leave nothing behind."""
        with open_database(self._options.dsn, self._options.schema) as database:
            drop_stages(database, self._options.load)
