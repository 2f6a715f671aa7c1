"""The statements that repair a schema which differs from what the migrations make; in the schema trioboss."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeAlias

import attrs

from trioboss.sql.parts import added_columns, making_statement, position
from trioboss.sql.plans import migrations

__all__ = ["Part", "Properties", "Repairs", "quote"]

Properties: TypeAlias = Mapping[str, Any]

_NONE = "-- no statement repairs this: install into a new schema, and send the jobs there"
_LOST = (
    "-- its values are lost: if the table has rows, no statement repairs this; install into a new schema, and send\n"
    "-- the jobs there\n"
)


@attrs.frozen
class Part:
    """An object of the schema, or a part of a table or type."""

    kind: str
    of: str | None
    """The table or type that it is a part of."""
    name: str
    """Of a function with its arguments."""
    model: str | None = attrs.field(default=None, eq=False)
    """The table that another one, made for a queue or a day, is compared with."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" if self.of is None else f"{self.kind} {self.name} of {self.of}"

    @property
    def position(self) -> int:
        """The position of its statement in the migrations, or of that of its table or type; -1 if it has none."""
        places = (
            (self.kind, self.name.partition("(")[0]),
            ("table", self.model or self.of or ""),
            ("view", self.of or ""),
            ("type", self.of or ""),
        )
        return next((number for each in places if (number := position(*each)) is not None), -1)


def quote(name: str) -> str:
    """A name that others gave, as an identifier."""
    return '"' + name.replace('"', '""') + '"'


@attrs.frozen
class Repairs:
    """Statements that make the schema as it is expected, from what was found there."""

    _expected: Mapping[Part, Properties]
    _found: Mapping[Part, Properties]

    def is_separate(self, part: Part) -> bool:
        """Whether a missing part is repaired by itself, and not with its table or type."""
        if part.kind in ("trigger", "column") and not self._expected[part].keys() & {"definition", "type"}:
            return False  # of a partition, which has it from its table
        owner = part.of is not None and next(
            (each for each in self._expected if each.of is None and each.name == part.of), None
        )
        return not owner or owner in self._found or (part.kind in ("index", "trigger") and not owner.model)

    # -- missing parts

    def make(self, part: Part) -> str:
        """Statements that make a part that is missing."""
        properties = self._expected[part]
        table = f"ALTER TABLE trioboss.{part.of}"
        match part.kind:
            case "column":
                note = _LOST if _needs_value(properties) else ""
                return f"{note}{table} ADD COLUMN {part.name} {_column(properties)};"
            case "constraint":
                return f"{table} ADD CONSTRAINT {part.name} {properties['definition']};"
            case "option":
                return f"{table} SET ({part.name} = {properties['value']});"
            case "check":
                return (
                    f"ALTER DOMAIN trioboss.{part.of} ADD CONSTRAINT {part.name} {properties['definition']};"
                )
            case "value":
                place = f" AFTER '{properties['after']}'" if properties["after"] else ""
                return f"ALTER TYPE trioboss.{part.of} ADD VALUE '{part.name}'{place};"
            case "table":
                return self._make_table(part)
            case "sequence":
                return "\n".join([str(making_statement("sequence", part.name)), *self._continue(part.name)])
            case "function":
                revoke = f"REVOKE ALL ON FUNCTION trioboss.{part.name} FROM PUBLIC;"
                return f"{making_statement('function', part.name.partition('(')[0])}\n{revoke}"
        return making_statement(part.kind, part.name) or _NONE

    def fill(self, table: str) -> str | None:
        """The statement that gives a table the rows that it always has; None if it has none."""
        if table == "version":
            return "".join(migration.note for migration in migrations()).rstrip()
        return making_statement("row", table)

    def _make_table(self, part: Part) -> str:
        if part.model is not None:
            options = ", ".join(
                f"{each.name} = {properties['value']}"
                for each, properties in self._expected.items()
                if (each.kind, each.of) == ("option", part.name)
            )
            parent = self._expected[part]["parent"]
            made = f"CREATE TABLE trioboss.{part.name} (LIKE trioboss.{parent} INCLUDING DEFAULTS) WITH ({options});"
            rights = f"SELECT trioboss.copy_rights('trioboss.{part.model}', 'trioboss.{part.name}');"
            return "\n".join([made, *self._attach(part), rights])
        made = str(making_statement("table", part.name))
        rows = self.fill(part.name)
        attached = () if "PARTITION OF" in made else self._attach(part)
        return "\n".join([made, *added_columns(part.name), *([rows] if rows else []), *attached])

    def _attach(self, part: Part) -> Iterator[str]:
        """Make a table the partition that it should be; jobs of its queue that are elsewhere meanwhile come along."""
        properties, found = self._expected[part], self._found.get(part, {})
        parent, bound = properties["parent"], properties["bound"]
        if parent is None:
            return
        if found.get("parent") is not None:
            yield f"ALTER TABLE trioboss.{found['parent']} DETACH PARTITION trioboss.{part.name};"
        if part.model == "live_job_common":
            columns = ", ".join(
                each.name for each in self._expected if (each.kind, each.of) == ("column", parent)
            )
            queues = bound.removeprefix("FOR VALUES IN ")
            yield (
                f"WITH moved AS (DELETE FROM trioboss.{part.model} WHERE queue IN {queues} RETURNING *)\n"
                f"INSERT INTO trioboss.{part.name} ({columns}) SELECT {columns} FROM moved;"
            )
        yield f"ALTER TABLE trioboss.{parent} ATTACH PARTITION trioboss.{part.name} {bound};"

    def _continue(self, sequence: str) -> Iterator[str]:
        """Let a sequence that is made again continue after the numbers that are in use."""
        columns = [
            f"(SELECT max({each.name}) FROM trioboss.{each.of})"
            for each, properties in self._expected.items()
            if each.kind == "column"
            and f"nextval('trioboss.{sequence}'" in str(properties["default"])
            and "type" in properties
            and each in self._found
        ]
        if columns:
            yield f"SELECT setval('trioboss.{sequence}', greatest(1, {', '.join(columns)}));"

    # -- changed parts

    def change(self, part: Part, changed: Collection[str]) -> str:
        """Statements that give a part the expected properties."""
        changes: Callable[[Part, Properties, Properties, Collection[str]], Iterator[str]] | None = {
            "table": self._change_table,
            "column": _change_column,
            "sequence": _change_sequence,
            "type": _change_type,
        }.get(part.kind)
        properties, found = self._expected[part], self._found[part]
        statements = (
            self._replace(part, changed)
            if changes is None
            else list(changes(part, properties, found, changed))
        )
        if "owner" in changed:
            kind = {"type": "TYPE", "function": "ROUTINE"}.get(part.kind, "TABLE")
            statements.append(f"ALTER {kind} trioboss.{part.name} OWNER TO {found['owner']};")
        return "\n".join(statements) or _NONE

    def _replace(self, part: Part, changed: Collection[str]) -> list[str]:
        """Make a part anew, or have it replaced, or only switched on."""
        again = self.make(part)
        name = part.name.partition("(")[0]
        match part.kind:
            case "trigger" if "definition" not in changed:
                return [f"ALTER TABLE trioboss.{part.of} ENABLE TRIGGER {part.name};"]
            case "trigger":
                return [f"DROP TRIGGER {part.name} ON trioboss.{part.of};", again]
            case "index":
                return [f"DROP INDEX trioboss.{part.name};", again]
            case "constraint":
                return [f"ALTER TABLE trioboss.{part.of} DROP CONSTRAINT {part.name};", again]
            case "check":
                return [f"ALTER DOMAIN trioboss.{part.of} DROP CONSTRAINT {part.name};", again]
            case "option":
                return [again]
            case "view" | "function" if set(changed) <= {"owner"}:
                return []
            case "function" if "result" in changed:
                return [f"DROP FUNCTION trioboss.{part.name};", again]
            case "view" | "function":
                kind = part.kind.upper()
                return [
                    str(making_statement(part.kind, name)).replace(
                        f"CREATE {kind}", f"CREATE OR REPLACE {kind}", 1
                    )
                ]
        return []

    def _change_table(
        self, part: Part, properties: Properties, found: Properties, changed: Collection[str]
    ) -> Iterator[str]:
        actions = {
            "unlogged": "SET UNLOGGED" if properties["unlogged"] else "SET LOGGED",
            "row security": "DISABLE ROW LEVEL SECURITY",
            "forced row security": "NO FORCE ROW LEVEL SECURITY",
            "constraint triggers": "ENABLE TRIGGER ALL",
        }
        for name in changed:
            if name in actions:
                yield f"ALTER TABLE trioboss.{part.name} {actions[name]};"
        if "parent" in changed or "bound" in changed:
            yield from self._attach(part)

    # -- parts of others

    def remove(self, part: Part) -> tuple[str, str] | None:
        """The effect of a part that is not one of trioboss, and the statement that ends it; None if it does no harm."""
        owner = next((each for each in self._expected if each.of is None and each.name == part.of), None)
        if owner is None:
            return None
        found, table = self._found[part], f"trioboss.{part.of}"
        # The indexes of a partition that is not attached are those that it had from its table.
        is_partition = self._expected[owner].get("parent") is not None
        match part.kind:
            case "trigger" if "definition" in found:
                return self._foreign(part, "runs in every statement", f"DROP TRIGGER {{}} ON {table};")
            case "rule":
                return self._foreign(part, "changes statements", f"DROP RULE {{}} ON {table};")
            case "constraint" if not (found["key"] and is_partition):
                return self._foreign(part, "refuses rows", f"ALTER TABLE {table} DROP CONSTRAINT {{}};")
            case "check":
                return self._foreign(part, "refuses values", f"ALTER DOMAIN {table} DROP CONSTRAINT {{}};")
            case "index" if not found["valid"]:
                return (
                    f"{part} is invalid: no statement uses it",
                    f"REINDEX INDEX trioboss.{quote(part.name)};",
                )
            case "index" if found["unique"] and not is_partition:
                return self._foreign(part, "refuses rows", "DROP INDEX trioboss.{};")
            case "option":
                return f"{part} was set", f"ALTER TABLE {table} RESET ({part.name});"
            case "column" if "not null" in found and _needs_value(found):
                change = f"ALTER TABLE {table} ALTER COLUMN {{}} DROP NOT NULL;"
                return self._foreign(part, "must have a value", change)
        return None

    def _foreign(self, part: Part, harm: str, statement: str) -> tuple[str, str]:
        return f"{part} is not one of trioboss: it {harm}", statement.format(quote(part.name))


def _needs_value(column: Properties) -> bool:
    """Whether a column cannot be added to a table that has rows."""
    return column["not null"] and column["default"] is None and column["generated"] is None


def _column(properties: Properties) -> str:
    text: str = properties["type"]
    if properties["generated"] is not None:
        return f"{text} GENERATED ALWAYS AS ({properties['generated']}) STORED"
    if properties["not null"]:
        text += " NOT NULL"
    return text if properties["default"] is None else f"{text} DEFAULT {properties['default']}"


def _change_column(
    part: Part, properties: Properties, found: Properties, changed: Collection[str]
) -> Iterator[str]:
    table = f"ALTER TABLE trioboss.{part.of}"
    if "generated" in changed:
        yield f"{table} DROP COLUMN {part.name}, ADD COLUMN {part.name} {_column(properties)};"
        return
    changes = []
    default = properties["default"]
    if "type" in changed and found["default"] is not None:
        changes.append("DROP DEFAULT")  # a default of the old type may not fit the new one
    if "type" in changed:
        changes.append(f"TYPE {properties['type']} USING {part.name}::{properties['type']}")
    if default is not None and ("default" in changed or "type" in changed):
        changes.append(f"SET DEFAULT {default}")
    elif "default" in changed:
        changes.append("DROP DEFAULT")
    if "not null" in changed:
        changes.append("SET NOT NULL" if properties["not null"] else "DROP NOT NULL")
    yield f"{table} {', '.join(f'ALTER COLUMN {part.name} {each}' for each in changes)};"


def _change_sequence(
    part: Part, properties: Properties, found: Properties, changed: Collection[str]
) -> Iterator[str]:
    clauses = {
        name: f"{name.upper()} {properties[name]}"
        for name in ("increment by", "minvalue", "maxvalue", "cache")
    }
    clauses["type"] = f"AS {properties['type']}"
    clauses["cycle"] = "CYCLE" if properties["cycle"] else "NO CYCLE"
    if wanted := [clauses[name] for name in changed if name in clauses]:
        yield f"ALTER SEQUENCE trioboss.{part.name} {' '.join(wanted)};"


def _change_type(
    part: Part, properties: Properties, found: Properties, changed: Collection[str]
) -> Iterator[str]:
    domain = f"ALTER DOMAIN trioboss.{part.name}"
    if "not null" in changed:
        yield f"{domain} {'SET' if properties['not null'] else 'DROP'} NOT NULL;"
    if "default" in changed:
        yield f"{domain} DROP DEFAULT;"
