"""Leaves columns, and fields of JSON, out of what is read. The server does it: they do not leave the database."""

from collections.abc import Iterable, Sequence

from trioboss.errors import UsageError
from trioboss.pipeline.columns import TABLES, Table

__all__ = ["check_columns", "columns_left_out", "literal", "parse_redact", "without_field"]

# Without these, exports and audits could not tell rows apart, and erasures could not find the copies of a job's data.
_NEEDED = {"id", "job_id", "queue", "xid", "completed_on", "ended_on", "source_id", "redriven_from"}
_DEEPEST = 1
"""Objects in an array are searched for the field. An array in an array is left out as a whole: to search that, too,
would make the expression of a path of six names as long as a book."""


def literal(text: str) -> str:
    """A text in SQL."""
    if "\\" in text or "\0" in text:  # names of queues have neither
        raise UsageError(f"{text!r} cannot be part of a statement")
    return "'" + text.replace("'", "''") + "'"


def parse_redact(given: Iterable[str], table: Table) -> dict[str, tuple[tuple[str, ...], ...]]:
    """For each column the paths of the fields that are to be left out, or raise UsageError.

    A column that this table does not have may be one of the other history table.
    """
    paths: dict[str, tuple[tuple[str, ...], ...]] = {}
    for entry in given:
        name, *path = entry.split(".")
        column = table.find(name)
        if column is None:
            _check_name("redact", name)
            continue
        if name in _NEEDED:
            raise UsageError(f"redact: {name} is needed")
        if path and column.kind != "json":
            raise UsageError(f"redact: {name} is not JSON, so it has no fields")
        if not all(path):
            raise UsageError(f"redact: {entry!r} has an empty name in it")
        paths[name] = (*paths.get(name, ()), tuple(path))
    return paths


def check_columns(given: Iterable[str]) -> tuple[str, ...]:
    """The names of columns of any table, each once and sorted, or raise UsageError."""
    names = sorted(set(given))
    for name in names:
        _check_name("columns", name)
    return tuple(names)


def columns_left_out(chosen: Sequence[str], table: Table) -> tuple[str, ...]:
    """The columns of a table that are not among the chosen ones, and are not needed."""
    return tuple(
        column.name for column in table.columns if column.name not in _NEEDED and column.name not in chosen
    )


def _check_name(option: str, name: str) -> None:
    if not any(table.find(name) for table in TABLES.values()):
        raise UsageError(f"{option}: there is no column {name!r}")


def without_field(value: str, path: Sequence[str], depth: int = 0) -> str:
    """The expression for JSON without the field at a path: of an object or, in an array, of all objects.

    A number in the path is the place of an element of an array, and the name of a field of an object. Postgres's own
    operator, ``#-``, raises an error for an array where the path has a name: one such payload would stop all exports.
    """
    v, field, rest = f"v{len(path)}_{depth}", literal(path[0]), path[1:]
    if rest:
        inner = without_field(f"{v} -> {field}", rest)
        of_object = f"CASE WHEN {v} ? {field} THEN jsonb_set({v}, ARRAY[{field}], {inner}) ELSE {v} END"
    else:
        of_object = f"{v} - {field}"
    return (
        f"(SELECT CASE jsonb_typeof({v}) WHEN 'object' THEN {of_object} WHEN 'array' THEN "
        f"{_without_field_in_array(v, path, depth)} ELSE {v} END FROM (SELECT {value} AS {v}) s{v})"
    )


def _without_field_in_array(v: str, path: Sequence[str], depth: int) -> str:
    place, rest = path[0], path[1:]
    if place.isascii() and place.isdigit() and len(place) < 9:
        if not rest:
            return f"{v} - {place}"
        inner = without_field(f"{v} -> {place}", rest)
        return (
            f"CASE WHEN jsonb_array_length({v}) > {place} "
            f"THEN jsonb_set({v}, ARRAY['{int(place)}'], {inner}) ELSE {v} END"
        )
    if depth == _DEEPEST:
        return "'[]'::jsonb"
    each = without_field(f"e{v}", path, depth + 1)
    return (
        f"(SELECT coalesce(jsonb_agg({each} ORDER BY o{v}), '[]') "
        f"FROM jsonb_array_elements({v}) WITH ORDINALITY a{v} (e{v}, o{v}))"
    )
