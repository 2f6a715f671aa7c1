"""Migrates the schema of a database to the version this program needs. Operations, like those of the store."""

from trioboss.errors import SchemaOutOfDate
from trioboss.postgres.operation import Batch, Operation, Script
from trioboss.postgres.wire import BoundStatement
from trioboss.postgres.wire.results import read_rows
from trioboss.sql import Catalog
from trioboss.sql.plans import LATEST, lock_text, migrations

__all__ = ["check_version", "migrate", "read_version"]


def read_version(catalog: Catalog) -> Operation[int | None]:
    """Return the version of the schema, or None if it is not installed."""
    results = yield Batch((BoundStatement(catalog.get("is_installed")),))
    if not read_rows(results[0][0])[0][0]:
        return None
    results = yield Batch((BoundStatement(catalog.get("get_version")),))
    return int(read_rows(results[0][0])[0][0])


def check_version(catalog: Catalog) -> Operation[None]:
    """Raise SchemaOutOfDate unless the schema has exactly the version this program needs."""
    found = yield from read_version(catalog)
    if found != LATEST:
        raise SchemaOutOfDate(catalog.schema, found, LATEST)


def migrate(catalog: Catalog) -> Operation[None]:
    """Apply the missing migrations, all or none, one process at a time. Needs an open transaction around it."""
    # The first check takes no lock: a process that starts with an up-to-date schema waits for no other one.
    if (yield from read_version(catalog)) == LATEST:
        return
    yield Script(lock_text(catalog.schema))
    # Another process may have migrated the schema while this one waited for the lock.
    found = (yield from read_version(catalog)) or 0
    if found > LATEST:
        raise SchemaOutOfDate(catalog.schema, found, LATEST)
    for migration in migrations():
        if migration.version > found:
            yield Script(migration.apply_text(catalog.schema))
