"""Brings the schema of a database to the version this program needs. Conversations, like the verbs."""

from trioboss.errors import SchemaOutOfDate
from trioboss.postgres.operation import Batch, Operation, Script
from trioboss.postgres.results import read_rows
from trioboss.postgres.wire import BoundStatement
from trioboss.sql import Catalog
from trioboss.sql.plans import LATEST, lock_text, migrations

__all__ = ["check_version", "migrate", "read_version"]


def read_version(catalog: Catalog) -> Operation[int | None]:
    """The version of the schema, or None if it is not installed."""
    results = yield Batch((BoundStatement(catalog.get("is_installed")),))
    if not read_rows(results[0][0])[0][0]:
        return None
    results = yield Batch((BoundStatement(catalog.get("get_version")),))
    return int(read_rows(results[0][0])[0][0])


def check_version(catalog: Catalog) -> Operation[None]:
    """Raise SchemaOutOfDate unless the schema is exactly what this program needs."""
    found = yield from read_version(catalog)
    if found != LATEST:
        raise SchemaOutOfDate(catalog.schema, found, LATEST)


def migrate(catalog: Catalog) -> Operation[None]:
    """Apply what is missing, all or nothing, one migrator at a time. Needs an open transaction around it."""
    if (yield from read_version(catalog)) == LATEST:
        return
    yield Script(lock_text(catalog.schema))
    # Somebody else may have done it while we waited for the lock.
    found = (yield from read_version(catalog)) or 0
    if found > LATEST:
        raise SchemaOutOfDate(catalog.schema, found, LATEST)
    for migration in migrations():
        if migration.version > found:
            yield Script(migration.apply_text(catalog.schema))
