"""The statements of the pipeline, on a blocking connection. For the driver, and for tasks that begin and end."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs

from trioboss.errors import SchemaOutOfDate
from trioboss.postgres.blocking import BlockingConnection, open_blocking, run_blocking
from trioboss.postgres.errors import is_lock_not_available, translate_errors
from trioboss.postgres.wire import read_rows
from trioboss.sql import COMMON_TABLE, Catalog, Statement
from trioboss.sql.plans import LATEST
from trioboss.store.context import bind

__all__ = ["Answer", "Database", "open_database"]

_RELATION = re.compile(r"archive|attempt|live_job|(archive|attempt)_(\d{8}|default)|stage_[0-9a-f]{32}")


@attrs.frozen
class Answer:
    """The rows that a statement returned, and how many it wrote or, if it wrote none, returned."""

    rows: list[tuple[Any, ...]]
    written: int


@attrs.frozen
class Database:
    """A connection, and the statements of one schema."""

    connection: BlockingConnection
    catalog: Catalog

    def run(
        self, name: str, *, job_table: str = COMMON_TABLE, of: dict[str, str] | None = None, **values: object
    ) -> list[tuple[Any, ...]]:
        """Run a statement; return its rows. ``of`` gives it other tables than it names: {"archive": "attempt"}."""
        return self.ask(name, job_table=job_table, of=of, **values).rows

    def ask(
        self, name: str, *, job_table: str = COMMON_TABLE, of: dict[str, str] | None = None, **values: object
    ) -> "Answer":
        """Run a statement; return all that it answers."""
        statement = _address(self.catalog.get(name, job_table), of or {})
        commits = self.connection.info.transaction_status.name == "IDLE"
        with translate_errors(self.connection, commits=commits):
            results = run_blocking(self.connection, [[bind(statement, values)]], prepare=False)
        result = results[0][0]
        return Answer(read_rows(result) if result.nfields else [], result.command_tuples or 0)

    def drop_stage(self, table: str) -> bool:
        """Drop a stage, unless somebody is writing to it; whether it is gone."""
        try:
            self.run("drop_stage", stage=table)
        except Exception as error:
            if not is_lock_not_available(error):
                raise
            return False
        return True

    @contextmanager
    def transaction(self, *, writes: bool = True) -> Iterator[None]:
        """A block whose statements happen all or none. If it only reads, no outcome is unknown."""
        with translate_errors(self.connection, commits=writes), self.connection.transaction():
            yield


def _address(statement: Statement, relations: dict[str, str]) -> Statement:
    text = statement.text
    for name, relation in relations.items():
        if not _RELATION.fullmatch(relation):
            raise ValueError(f"{relation!r} is not a table of history, nor a stage")
        text = re.sub(rf"(?<=\.){re.escape(name)}\b", relation, text)
    return Statement(statement.name, text, statement.parameters)


@contextmanager
def open_database(dsn: str, schema: str = "trioboss") -> Iterator[Database]:
    """Connect for the length of a block, or raise SchemaOutOfDate if the schema is not there."""
    connection = open_blocking(dsn)
    try:
        database = Database(connection, Catalog(schema))
        if not database.run("is_installed")[0][0]:
            raise SchemaOutOfDate(schema, None, LATEST)
        yield database
    finally:
        connection.close()
