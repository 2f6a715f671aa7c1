"""Finds tables and columns that have another name than the migrations give them.

They get their names back. New ones beside them would be empty, could not have the names of the indexes that are there,
and a column without a default cannot be added to a table with rows.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from trioboss.cli.repairs import Part, Properties, quote

__all__ = ["undo_renames"]


def undo_renames(
    expected: Mapping[Part, Properties], found: dict[Part, Properties]
) -> Iterator[tuple[str, str]]:
    """Renamed tables and columns, each with the statement that renames it. ``found`` is changed to the objects as
    they are after these statements.
    """
    for part, name in list(_find_tables(expected, found)):
        yield (
            f"{part} is missing: it has the name {name}",
            f"ALTER TABLE trioboss.{quote(name)} RENAME TO {part.name};",
        )
        _rename_table(found, name, part.name)
    for part, name in list(_find_columns(expected, found)):
        statement = f"ALTER TABLE trioboss.{part.of} RENAME COLUMN {quote(name)} TO {part.name};"
        yield f"{part} is missing: it has the name {name}", statement
        _rename_column(found, str(part.of), name, part.name)


def _columns(objects: Mapping[Part, Properties], table: str) -> dict[str, Properties]:
    return {part.name: each for part, each in objects.items() if (part.kind, part.of) == ("column", table)}


def _find_tables(
    expected: Mapping[Part, Properties], found: Mapping[Part, Properties]
) -> Iterator[tuple[Part, str]]:
    """Tables that are missing, each with the name of the only table of others that has its columns."""
    others = [part.name for part in found if part.kind == "table" and part not in expected]
    for part in expected:
        if part.kind == "table" and part not in found:
            wanted = _columns(expected, part.name)
            alike = [name for name in others if _columns(found, name) == wanted]
            if len(alike) == 1:
                yield part, alike[0]


def _find_columns(
    expected: Mapping[Part, Properties], found: Mapping[Part, Properties]
) -> Iterator[tuple[Part, str]]:
    """The only column that a table lacks, with the name of the only one that is not its own, if both are alike."""
    for table in [part for part in expected if part.kind == "table" and part in found]:
        wanted, there = _columns(expected, table.name), _columns(found, table.name)
        missing, others = wanted.keys() - there.keys(), there.keys() - wanted.keys()
        if len(missing) == len(others) == 1:
            (name,), (other,) = missing, others
            # A partition has its columns from its table.
            if "type" in wanted[name] and wanted[name] == there[other]:
                yield Part("column", table.name, name), other


def _rename_table(found: dict[Part, Properties], old: str, new: str) -> None:
    name = re.compile(rf"\btrioboss\.({re.escape(old)}\b|{re.escape(quote(old))})")
    for part in list(found):
        properties = {
            key: new if key == "parent" and value == old else _replace(name, f"trioboss.{new}", value)
            for key, value in found.pop(part).items()
        }
        if (part.kind, part.of, part.name) == ("table", None, old):
            part = attrs.evolve(part, name=new)
        found[attrs.evolve(part, of=new) if part.of == old else part] = properties


def _rename_column(found: dict[Part, Properties], table: str, old: str, new: str) -> None:
    """Rename a column of a table and of its partitions, and in the definitions of their parts."""
    partitions = {part.name for part, properties in found.items() if properties.get("parent") == table}
    name = re.compile(rf"\b{re.escape(old)}\b|{re.escape(quote(old))}")
    for part in list(found):
        if not {part.of, part.name} & {table, *partitions}:
            continue
        properties = {key: _replace(name, new, value) for key, value in found.pop(part).items()}
        is_it = part.kind == "column" and part.name == old
        found[attrs.evolve(part, name=new) if is_it else part] = properties


def _replace(pattern: re.Pattern[str], text: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_replace(pattern, text, each) for each in value]
    return pattern.sub(text, value) if isinstance(value, str) else value
