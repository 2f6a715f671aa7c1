"""What a lake has: one entry for each batch that was exported, and the intent of the one that is under way.

A batch is a range of transactions. Its files are first written aside. Then its intent says where each of them belongs;
from then on the batch happens, whoever carries it out. Then they are moved, and the entry is written. So after a crash
there is nothing to guess: without an intent, what is aside is rubbish; with one, what is not yet moved is moved.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import uuid4

import attrs

from trioboss.errors import UsageError
from trioboss.pipeline.files import Files

__all__ = ["Batch", "Manifest"]

_FOLDER = "_manifest"
_ASIDE = "_aside"
_VERSION = 1


@attrs.frozen
class Batch:
    """The rows that transactions from ``first`` on and before ``end`` wrote."""

    number: int
    first: int
    end: int
    rows: Mapping[str, int]
    """How many, by the name of the folder: jobs, attempts."""
    moves: tuple[tuple[str, str], ...]
    """Where each file was written, and where it belongs."""


@attrs.frozen
class Manifest:
    """The book of a lake."""

    files: Files
    aside: str = attrs.field(factory=lambda: f"{_ASIDE}/{uuid4().hex}", init=False)
    """Where the files of the next batch are written. Tasks of a killed export may still write to another folder."""

    def last(self) -> Batch | None:
        """The last batch that the lake has."""
        numbers = [name for name in self.files.names(_FOLDER) if name.endswith(".json")]
        return self._read(f"{_FOLDER}/{numbers[-1]}") if numbers else None

    def recover(self) -> Batch | None:
        """Carry out what was intended, clear away what was not; return the last batch."""
        for name in self.files.names(_FOLDER):
            if name.endswith(".intent"):
                self._carry_out(self._read(f"{_FOLDER}/{name}"))
        self.files.delete(_ASIDE)
        return self.last()

    def add(self, batch: Batch) -> None:
        """Make the files of a batch, complete and aside, part of the lake."""
        self.files.write(_name(batch.number, "intent"), _write(batch))
        self._carry_out(batch)
        self.files.delete(_ASIDE)

    def _carry_out(self, batch: Batch) -> None:
        entry = _name(batch.number, "json")
        if not self.files.exists(entry):
            for source, target in batch.moves:
                if self.files.exists(source):
                    self.files.move(source, target)
            self.files.write(entry, _write(batch))
        self.files.delete(_name(batch.number, "intent"))

    def _read(self, path: str) -> Batch:
        entry = self.files.read(path)
        if entry.get("version") != _VERSION:
            raise UsageError(f"{self.files.at(path)}: written by another version of trioboss")
        moves = tuple((source, target) for source, target in entry["moves"])
        return Batch(entry["number"], entry["first"], entry["end"], entry["rows"], moves)


def _name(number: int, kind: str) -> str:
    return f"{_FOLDER}/{number:010}.{kind}"


def _write(batch: Batch) -> dict[str, object]:
    return {"version": _VERSION, **attrs.asdict(batch), "written_on": datetime.now(UTC).isoformat()}
