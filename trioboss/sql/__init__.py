"""The statements, as they stand in their files.

A file in ``statements/`` holds one statement. Parts that several statements share are in ``statements/fragments/``, and
a line ``\\ir fragments/NAME.sql`` stands for one of them; with ``backlog=b.backlog`` behind it, ``<backlog>`` in the
fragment stands for ``b.backlog``, because statements give their tables different names. Parameters are psql variables
(``:queue``): here they become ``$1``, ``$2``, …, and psql runs what ``python -m trioboss.sql NAME`` prints, after
``\\set queue '''email'''``. (psql itself includes files only between statements.)
The schema is spelled ``trioboss`` and the table of live jobs ``trioboss.live_job_common``; a boss in another schema, or
a queue with a table of its own, gets the same text with those two names replaced, also where they are quoted
(``'trioboss'`` is the channel, ``'live_job_common'`` is compared with the table that the queue has). The pipeline also
replaces ``archive`` and ``stage_row`` by the table that a task reads or writes (pipeline/database.py), and puts the
query for chunks of history together from names that it has checked (pipeline/query.py). Nothing else is ever spliced
into SQL.

plans   the migrations as SQL text, for schemas that others apply (`plans` as in pg-boss: not those of queries)
parts   the migrations as single statements, found by the object that each makes
grants  the rights of roles, as SQL text
"""

import re
from importlib import resources

import attrs

__all__ = ["COMMON_TABLE", "Catalog", "Statement", "check_schema", "qualify", "read_source", "unqualify"]

COMMON_TABLE = "live_job_common"

_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,49}")
_OF_OTHERS = ("public", "information_schema")
_JOB_TABLE = re.compile(r"live_job_common|j[0-9a-f]{32}")
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
_COMMENT = re.compile(r"--[^\n]*")
_INCLUDE = re.compile(r"^\\ir (fragments/\w+\.sql)((?: \w+=\S+)*)$", re.MULTILINE)


@attrs.frozen
class Statement:
    """One statement: its name, its text with ``$n`` placeholders, and what each placeholder means."""

    name: str
    text: str
    parameters: tuple[str, ...]


def check_schema(schema: str) -> str:
    """Return ``schema`` if it can be the name of a trioboss schema, else raise ValueError."""
    if not isinstance(schema, str) or not _SCHEMA.fullmatch(schema):
        raise ValueError(
            f"schema: {schema!r} is not a schema name: use a letter or underscore, then letters, "
            "digits and underscores, at most 50 in all"
        )
    if schema.startswith("pg_"):
        raise ValueError(f"schema: {schema!r} is not a schema name: Postgres keeps names with pg_ for itself")
    if schema in _OF_OTHERS:
        raise ValueError(f"schema: {schema!r} is not a schema name for trioboss: others have objects there")
    return schema


def qualify(text: str, schema: str) -> str:
    """Rename the schema in ``text``: as a qualifier, as a quoted name, and as the notify channel."""
    check_schema(schema)
    text = re.sub(r"\btrioboss\.", f'"{schema}".', text)
    text = re.sub(r'"trioboss"', f'"{schema}"', text)
    return re.sub(r"'trioboss'", f"'{schema}'", text)


def unqualify(text: str, schema: str) -> str:
    """Rename the schema to ``trioboss`` in a definition that the catalog of Postgres shows with all schemas."""
    text = re.sub(rf'(?<![\w."])("?){schema}\1\.', "trioboss.", text)
    return text.replace(f"'{schema}'", "'trioboss'")


def read_source(name: str) -> str:
    """The text of ``statements/<name>.sql`` with its fragments in place."""
    return _read(f"{name}.sql")


def _read(file: str) -> str:
    text = resources.files(__name__).joinpath("statements", file).read_text("utf-8")
    return _INCLUDE.sub(lambda match: _read_fragment(match[1], match[2].split()), text)


def _read_fragment(file: str, given: list[str]) -> str:
    # A fragment may include others: what those are given may be what this one is given.
    text = _read(file).rstrip("\n")
    for name, _, value in (argument.partition("=") for argument in given):
        text = text.replace(f"<{name}>", value)
    return text


def _number_parameters(text: str) -> tuple[str, tuple[str, ...]]:
    names: dict[str, int] = {}

    def placeholder(match: re.Match[str]) -> str:
        return f"${names.setdefault(match[1], len(names) + 1)}"

    return _PARAMETER.sub(placeholder, text), tuple(names)


@attrs.frozen
class Catalog:
    """All statements of one schema. Reads each file once."""

    schema: str = attrs.field(validator=lambda _, __, value: check_schema(value))
    _loaded: dict[tuple[str, str], Statement] = attrs.field(factory=dict, init=False, eq=False)

    def get(self, name: str, table: str = COMMON_TABLE) -> Statement:
        """Return the statement in ``statements/<name>.sql``, addressed to the given job table."""
        statement = self._loaded.get((name, table))
        if statement is None:
            statement = self._loaded[name, table] = self._load(name, table)
        return statement

    def _load(self, name: str, table: str) -> Statement:
        if not _JOB_TABLE.fullmatch(table):
            raise ValueError(f"table: {table!r} is not a job table")
        # The table before the schema: a schema may have the name of the table.
        text = re.sub(rf"(?<=[.']){COMMON_TABLE}\b", table, _COMMENT.sub("", read_source(name)))
        text = qualify(text, self.schema).strip().rstrip(";")
        text, parameters = _number_parameters(text)
        return Statement(name if table == COMMON_TABLE else f"{name}@{table}", text, parameters)
