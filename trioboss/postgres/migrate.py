"""Migrates the schema of a database to the version this program needs. Operations, like those of the store."""

from trioboss.errors import SchemaOutOfDate
from trioboss.postgres.errors import lacks_privilege
from trioboss.postgres.operation import Batch, Operation, Script
from trioboss.postgres.wire import BoundStatement, read_rows
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
    """Raise SchemaOutOfDate unless the schema has the version this program needs, or a newer one that is declared
    compatible with it.
    """
    found = yield from read_version(catalog)
    if not (yield from _is_compatible(catalog, found)):
        raise SchemaOutOfDate(catalog.schema, found, LATEST)


def _is_compatible(catalog: Catalog, found: int | None) -> Operation[bool]:
    if found is None or found <= LATEST:
        return found == LATEST
    results = yield Batch((BoundStatement(catalog.get("get_compatible")),))
    oldest = read_rows(results[0][0])[0][0]
    return oldest is not None and int(oldest) <= LATEST


def migrate(catalog: Catalog, *, create_schema: bool = True) -> Operation[None]:
    """Apply the missing migrations, all or none, one process at a time. Needs an open transaction around it.

    ``create_schema=False`` raises SchemaOutOfDate where the schema itself is missing; so does a role that may not
    change it.
    """
    # The first check takes no lock: a process that starts with an up-to-date schema waits for no other one.
    found = yield from read_version(catalog)
    if (yield from _is_compatible(catalog, found)):
        return
    if found is None and not create_schema:
        results = yield Batch((BoundStatement(catalog.get("schema_exists")),))
        if not read_rows(results[0][0])[0][0]:
            raise SchemaOutOfDate(catalog.schema, None, LATEST, exists=False)
    try:
        yield from _apply_missing(catalog)
    except Exception as error:
        if not lacks_privilege(error):
            raise
        # A worker's role, for instance: the message names both versions, and the command for the admin.
        raise SchemaOutOfDate(catalog.schema, found, LATEST, refused=True) from error


def _apply_missing(catalog: Catalog) -> Operation[None]:
    yield Script(lock_text(catalog.schema))
    # Another process may have migrated the schema while this one waited for the lock.
    found = (yield from read_version(catalog)) or 0
    if found > LATEST:
        yield from check_version(catalog)
    for migration in migrations():
        if migration.version > found:
            yield Script(migration.apply_text(catalog.schema))
