"""Finds where a schema differs from what the migrations make, with the statements that repair it.

The migrations are applied to a schema that exists only within a transaction, which is rolled back: so the comparison is
exact on every version of Postgres. Tables that are made for one queue or day are compared with the table that holds
what has no table of its own. Which days have a table depends on when maintenance has run, and is no difference; only a
table that was dropped between others is.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import attrs

from trioboss.api.sync import SyncBoss
from trioboss.cli.drift_renames import undo_renames
from trioboss.cli.drift_rights import find_missing_rights, find_public, read_rights
from trioboss.cli.repairs import Part, Properties, Repairs, quote
from trioboss.postgres.blocking import BlockingConnection
from trioboss.sql import Catalog, qualify, unqualify
from trioboss.sql.plans import migrations

__all__ = ["Drift", "find_drift", "has_lost_its_version"]

Objects = Mapping[Part, Properties]

_COMMON = "live_job_common"
_DAY = re.compile(r"(archive|attempt)_\d{8}", re.ASCII)
_FIRST, _LAST = -2, 10**6  # positions before and after all statements of the migrations


@attrs.frozen
class Drift:
    """One difference, and what to do about it."""

    text: str
    repair: str


def find_drift(boss: SyncBoss) -> list[Drift]:
    """All differences, in the order in which to repair them. Needs the right to create schemas; nothing changes."""
    scratch = f"trioboss_doctor_{os.getpid()}"
    with boss.unchecked_transaction() as conn, conn.transaction(force_rollback=True):
        _execute(conn, f"SET LOCAL lock_timeout = '5s';\nCREATE SCHEMA \"{scratch}\";")
        for migration in migrations():
            _execute(conn, migration.apply_text(scratch))
        _execute(conn, "SET LOCAL search_path = ''; SET LOCAL timezone = 'UTC'")
        made, found = _describe(conn, scratch), _describe(conn, boss.schema)
        drift = _Comparison(made, found, boss.schema).run(*_read_contents(conn, boss.schema, found))
        drift += _find_missing_days(conn, boss.schema, found)
        rights, public = read_rights(conn, boss.schema), read_rights(conn, scratch)
        drift += [Drift(*each) for each in find_public(rights, public, boss.schema)]
        drift += [Drift(*each) for each in find_missing_rights(conn, scratch, rights)]
    return drift


def has_lost_its_version(boss: SyncBoss) -> bool:
    """Whether a schema that counts as not installed has the tables of one that is: a migration could not make them."""
    with boss.unchecked_transaction() as conn:
        found = {name for kind, _, name, _ in _read(conn, boss.schema, "describe_tables") if kind == "table"}
    return {"queue", "live_job", "archive"} <= found


def _execute(conn: BlockingConnection, text: str) -> None:
    conn.execute(text.encode())


def _read(conn: BlockingConnection, schema: str, statement: str) -> list[tuple[Any, ...]]:
    return conn.execute(Catalog(schema).get(statement).text.encode()).fetchall()


def _describe(conn: BlockingConnection, schema: str) -> Objects:
    """The properties of all objects, with the names of the schema trioboss."""
    return {
        Part(kind, of, _rename(name, schema)): {
            key: _rename(value, schema) for key, value in properties.items()
        }
        for statement in ("describe_tables", "describe_schema")
        for kind, of, name, properties in _read(conn, schema, statement)
    }


def _rename(value: Any, schema: str) -> Any:
    """A definition as it would be in the schema trioboss."""
    if isinstance(value, list):
        return [_rename(each, schema) for each in value]
    return unqualify(value, schema) if isinstance(value, str) else value


def _read_contents(
    conn: BlockingConnection, schema: str, found: Objects
) -> tuple[list[tuple[str, str]], list[str]]:
    """The queues with a table of their own, and the tables without a row that they need, as far as they can be read."""
    queues, empty = [], []
    if all(Part("column", "queue", column) in found for column in ("name", "partition", "table_name")):
        queues = [(name, table) for name, table in _read(conn, schema, "get_own_tables")]
    if all(Part("table", None, table) in found for table in ("lock_seed", "sampling", "version")):
        empty = [table for (table,) in _read(conn, schema, "find_empty")]
    return queues, empty


def _rank(part: Part, properties: Properties) -> int:
    """The order of parts of one table: columns, then what needs them, then what needs the keys of other constraints."""
    if part.kind == "column" and properties.get("generated") is None:
        return 0
    return 2 if str(properties.get("definition")).startswith("FOREIGN KEY") else 1


def _is_of_a_day(part: Part) -> bool:
    return _DAY.fullmatch(part.of or part.name) is not None


def _find_missing_days(conn: BlockingConnection, schema: str, found: Objects) -> list[Drift]:
    """Tables of days that were dropped; nothing where the schema lacks what is needed to tell, or to make them."""
    needed = (
        ("function", None, "add_days(today date, ahead integer)"),
        ("column", "archive_default", "completed_on"),
        ("column", "attempt_default", "ended_on"),
    )
    if not all(Part(*each) in found for each in needed):
        return []
    days = [name for (name,) in _read(conn, schema, "find_missing_days")]
    return [Drift(f"table {name} is missing", qualify(_repair_day(name, found), schema)) for name in days]


def _repair_day(name: str, found: Objects) -> str:
    parent, bound = _parent_and_bound(name)
    for part, properties in found.items():
        if (properties.get("parent"), properties.get("bound")) == (parent, bound):
            return f"ALTER TABLE trioboss.{quote(part.name)} RENAME TO {name};"
    return "SELECT trioboss.add_days((now() AT TIME ZONE 'UTC')::date, 7);"


def _parent_and_bound(name: str) -> tuple[str, str]:
    """The table that the table of a day is a partition of, and its bounds."""
    history, _, digits = name.rpartition("_")
    day = datetime.strptime(digits, "%Y%m%d")
    first, last = (f"'{each:%Y-%m-%d} 00:00:00+00'" for each in (day, day + timedelta(days=1)))
    return history, f"FOR VALUES FROM ({first}) TO ({last})"


@attrs.define
class _Comparison:
    """The objects as the migrations make them, beside those of the schema."""

    made: Objects
    found: Objects
    _schema: str
    _drift: list[tuple[int, int, Drift]] = attrs.field(factory=list, init=False)

    def run(self, queues: Iterable[tuple[str, str]], empty: Iterable[str]) -> list[Drift]:
        """The differences, in the order of the statements that make the objects.

        ``queues``: those that have a table of their own, with its name. ``empty``: tables that lack their row.
        """
        expected = {part: each for part, each in self.made.items() if not _is_of_a_day(part)}
        expected |= self._expect_partitions(dict(queues))
        for text, repair in undo_renames(expected, found := dict(self.found)):
            self._drift.append((_FIRST, 0, Drift(text, qualify(repair, self._schema))))
        self.found = found
        repairs = Repairs(expected, self.found)
        for part, properties in expected.items():
            if part not in self.found:
                if repairs.is_separate(part):
                    self._add(part, f"{part} is missing", repairs.make(part))
            elif changed := self._find_changed(part, properties):
                self._add(part, f"{part} was changed: {', '.join(changed)}", repairs.change(part, changed))
        for table in empty:
            self._add(Part("table", None, table), f"table {table} is empty", str(repairs.fill(table)))
        for part in self.found.keys() - expected.keys():
            if removal := repairs.remove(part):
                self._add(part, *removal)
        return [drift for *_, drift in sorted(self._drift, key=lambda each: (*each[:2], each[2].text))]

    def _add(self, part: Part, text: str, repair: str) -> None:
        # A table of a queue is made by what the migrations make for it.
        number = _LAST if part.model is not None and part not in self.found else part.position
        rank = _rank(part, self.made.get(part) or self.found.get(part) or {})
        self._drift.append((number, rank, Drift(text, qualify(repair, self._schema))))

    def _find_changed(self, part: Part, properties: Properties) -> list[str]:
        """The names of the properties that differ; of a value of a type its place among the others may."""
        if part.kind == "value":
            return []
        found = self.found[part]
        # A short name of a schema may also be that of a table within a query: both sides are renamed alike.
        return sorted(
            name for name, value in properties.items() if _rename(value, self._schema) != found.get(name)
        )

    def _expect_partitions(self, queues: Mapping[str, str]) -> Iterator[tuple[Part, Properties]]:
        """The tables of queues and days, with their parts, as they should be."""
        # The table of a day is like those of other days: the default one has constraints of its own.
        days = {
            part.name.partition("_")[0]: part.name for part in self.made if _is_of_a_day(part) and not part.of
        }
        bounds = {table: (_COMMON, _COMMON, f"FOR VALUES IN ('{queue}')") for queue, table in queues.items()}
        for part in self.found:
            if part.kind == "table" and _is_of_a_day(part):
                history, bound = _parent_and_bound(part.name)
                bounds[part.name] = (f"{history}_default", days[history], bound)
        for table, (model, like, bound) in bounds.items():
            for part, properties in self.made.items():
                if part == Part("table", None, like):
                    yield Part("table", None, table, model), {**properties, "bound": bound}
                elif part.of == like:
                    yield Part(part.kind, table, part.name, model), properties
