"""Databases in a server: made, dropped, and named in a dsn. Blocking, for set-up code and tests."""

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

__all__ = ["create_database", "drop_database", "replace_database"]


def create_database(dsn: str, name: str, template: str | None = None) -> None:
    """Create a database, as a copy of `template` if one is given; nobody may be connected to that."""
    statement = sql.SQL("create database {}").format(sql.Identifier(name))
    if template is not None:
        statement += sql.SQL(" template {}").format(sql.Identifier(template))
    _execute(dsn, statement)


def drop_database(dsn: str, name: str) -> None:
    """Drop a database, and whoever is connected to it. None of that name is fine."""
    _execute(dsn, sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def replace_database(dsn: str, name: str) -> str:
    """Return the same dsn for another database."""
    return make_conninfo(dsn, dbname=name)


def _execute(dsn: str, statement: sql.Composed) -> None:
    # Neither statement can run in a transaction.
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement)
