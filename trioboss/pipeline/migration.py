"""Migrates an embedded server. Not part of `database`, which every task of Spark imports: this needs much more."""

from trioboss.postgres.blocking import execute_blocking, open_blocking
from trioboss.postgres.migrate import migrate
from trioboss.sql import Catalog

__all__ = ["migrate_database"]


def migrate_database(dsn: str, schema: str) -> None:
    """Migrate the schema to the version that this program needs."""
    connection = open_blocking(dsn)
    try:
        with connection.transaction():
            execute_blocking(connection, migrate(Catalog(schema)), connection)
    finally:
        connection.close()
