"""Migrations, and the SQL that carries them out, as text that also works in psql."""

import re
from importlib import resources

import attrs

from trioboss.sql import qualify

__all__ = [
    "LATEST",
    "Migration",
    "construction_plans",
    "lock_text",
    "migration_plans",
    "migrations",
    "rollback_plans",
    "rollback_text",
]

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")
_COMPATIBLE = re.compile(r"^-- compatible: (\d+)$", re.MULTILINE)


@attrs.frozen
class Migration:
    """One step of the schema: how to take it, and how to take it back.

    A line `-- compatible: N` in its file declares that programs which need version N also work after this step: it only
    adds what they do not use.
    """

    version: int
    name: str
    up: str
    down: str

    @property
    def note(self) -> str:
        """The statement that writes the step down, in the schema trioboss."""
        compatible = self.compatible if self.compatible is not None else "NULL"
        return f"INSERT INTO trioboss.version (version, compatible) VALUES ({self.version}, {compatible});\n"

    def apply_text(self, schema: str) -> str:
        """The SQL that takes the step and writes it down."""
        return f"-- {self.version}: {self.name}\n{qualify(self.up + self.note, schema)}"

    @property
    def compatible(self) -> int | None:
        """The oldest programs that also work after this step, by the version that they need."""
        match = _COMPATIBLE.search(self.up)
        return None if match is None else int(match[1])

    def revert_text(self, schema: str) -> str:
        """The SQL that takes the step back."""
        # The first step takes the table of versions away with it.
        note = f"DELETE FROM trioboss.version WHERE version = {self.version};\n" if self.version > 1 else ""
        return f"-- back from {self.version}: {self.name}\n{qualify(note + self.down, schema)}"


def migrations() -> list[Migration]:
    """All migrations, in order."""
    files = {file.name: file for file in resources.files(__package__).joinpath("migrations").iterdir()}
    found = []
    for name in sorted(files):
        if match := _FILE.fullmatch(name):
            down = files[f"{match[1]}_{match[2]}.down.sql"].read_text("utf-8")
            found.append(Migration(int(match[1]), match[2], files[name].read_text("utf-8"), down))
    return found


LATEST = migrations()[-1].version
"""The version of the schema that this program needs."""


def lock_text(schema: str) -> str:
    """The SQL that lets one migrator at a time work on a schema, until its transaction ends.

    A migrator has many rights: nothing that others put into its search_path may act with them.
    """
    path = "SET LOCAL search_path = pg_catalog, pg_temp;\n"
    return path + qualify(
        "SELECT pg_advisory_xact_lock(hashtextextended('trioboss' || ' migrate', 0));\n", schema
    )


def construction_plans(schema: str = "trioboss") -> str:
    """SQL that creates everything in a database that has nothing of it yet."""
    return migration_plans(schema, 0)


def migration_plans(schema: str = "trioboss", version: int = 0) -> str:
    """SQL that takes a schema from ``version`` to the latest: a comment, if there is nothing to do."""
    if version not in range(LATEST + 1):
        raise ValueError(f"version: {version!r} is not between 0 and {LATEST}")
    if version == LATEST:
        return f"-- schema {schema!r} is at version {version}: nothing to do\n"
    steps = "\n".join(step.apply_text(schema) for step in migrations() if step.version > version)
    return f"BEGIN;\n{lock_text(schema)}\n{steps}\nCOMMIT;\n"


def rollback_plans(schema: str = "trioboss", version: int = LATEST, to: int | None = None) -> str:
    """SQL that takes a schema from ``version`` back to the one before, or to ``to``: 0 removes it.

    Data that only the removed versions have is lost. Things of others in the schema stay, and the schema with them.
    """
    return f"BEGIN;\n{lock_text(schema)}\n{rollback_text(schema, version, to)}\nCOMMIT;\n"


def rollback_text(schema: str, version: int, to: int | None = None) -> str:
    """The same without its transaction."""
    known = {step.version: step for step in migrations()}
    if version not in known:
        raise ValueError(f"version: {version!r} is not between 1 and {LATEST}")
    last = version - 1 if to is None else to
    if last not in range(version):
        raise ValueError(f"to: {to!r} is not between 0 and {version - 1}")
    return "\n".join(known[number].revert_text(schema) for number in range(version, last, -1))
