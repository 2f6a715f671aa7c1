"""Creates and drops databases of a server, and names one in a dsn. Blocking, for set-up code and tests."""

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

__all__ = ["create_database", "drop_database", "replace_database"]


def create_database(dsn: str, name: str, template: str | None = None) -> None:
    """Create a database, as a copy of ``template`` if given. No session may be connected to the template."""
    statement = sql.SQL("create database {}").format(sql.Identifier(name))
    if template is not None:
        statement += sql.SQL(" template {}").format(sql.Identifier(template))
    _execute(dsn, statement)


def drop_database(dsn: str, name: str) -> None:
    """Drop a database and end the sessions that are connected to it. It is no error if there is none of that name."""
    _execute(dsn, sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def replace_database(dsn: str, name: str) -> str:
    """Return the same dsn for another database."""
    return make_conninfo(dsn, dbname=name)


def _execute(dsn: str, statement: sql.Composed) -> None:
    # Neither statement can run inside a transaction block.
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement)
