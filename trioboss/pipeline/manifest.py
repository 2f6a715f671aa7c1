"""The manifest of a lake: whose history it has, and which files are part of it.

    _manifest/0000000001.lake.json          the lake's id, and the database and schema whose history it has
    _manifest/0000000042.json               batch 42: a range of transactions and its files, or changed files
    _manifest/0000000040.checkpoint.json    all files of the batches up to 40

No file is ever overwritten, for which not every file system has an atomic way: a change of the lake's format, or of
anything else that identifies it, is one more file of the first kind, and that with the highest number counts.

Readers take the files of the last checkpoint and of the batches after it, so they see a batch as a whole or not at all.
A file that no entry names is not part of the lake. Entries that a checkpoint covers are deleted.

A batch may also remove files: those that were joined to larger ones, had rows that were erased, or are too old. A Delta
lake keeps them for a while, for readers that have begun with them and for older versions. A lake of plain Parquet does
not: engines that read all files of a folder would read their rows twice.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import attrs

from trioboss.errors import UsageError
from trioboss.pipeline.files import UNFINISHED, Files

__all__ = [
    "FOLDERS",
    "Batch",
    "Contents",
    "Identity",
    "LakeFile",
    "Manifest",
    "Origin",
    "RemovedFile",
    "rows_by_folder",
]

FOLDERS = {"archive": "jobs", "attempt": "attempts"}
"""The folder of each history table."""

_FOLDER = "_manifest"
_IDENTITY, _BATCH, _CHECKPOINT = ".lake.json", ".json", ".checkpoint.json"
_VERSION = 3
_CHECKPOINT_BATCHES = 50
"""A checkpoint after so many batches: more make it larger than needed, fewer make readers open many files."""
_TRIES = 5


@attrs.frozen
class Origin:
    """The database and the schema whose history a lake has. Standbys of a server have the server's identifier."""

    server: str
    database: int
    schema: str


@attrs.frozen
class Identity:
    """Which lake this is."""

    id: UUID
    origin: Origin | None
    """None: the history was made up."""
    format: str = "parquet"
    """parquet, or delta: then each folder is also a table of Delta Lake (see `delta`)."""
    redact: tuple[str, ...] = ()
    """Columns, and fields of JSON, that exports leave out, for instance output or data.email."""
    columns: tuple[str, ...] = ()
    """If there are any, exports leave out all other columns without which rows can be told apart."""

    @property
    def keeps_removed(self) -> bool:
        """Whether files that a batch has removed stay for a while."""
        return self.format == "delta"


@attrs.frozen
class LakeFile:
    """A file of a lake."""

    path: str
    rows: int
    bytes: int

    @property
    def folder(self) -> str:
        """The folder of its table: jobs, attempts."""
        return self.path.partition("/")[0]

    @property
    def day(self) -> str:
        """The day of its rows, like 2026-11-16."""
        return self.path.split("/")[1].removeprefix("date=")


@attrs.frozen
class RemovedFile:
    """A file that is no longer part of a lake, and since when; it may still be there."""

    path: str
    removed_on: str


def rows_by_folder(files: Iterable[LakeFile]) -> dict[str, int]:
    """How many rows files have, by the name of the folder: jobs, attempts."""
    rows = dict.fromkeys(FOLDERS.values(), 0)
    for file in files:
        rows[file.folder] += file.rows
    return rows


@attrs.frozen
class Batch:
    """The rows that transactions from ``first`` on and before ``end`` wrote."""

    number: int
    first: int
    end: int
    rows: Mapping[str, int]
    """How many, by the name of the folder (see `rows_by_folder`)."""
    files: tuple[LakeFile, ...]
    removed: tuple[RemovedFile, ...] = ()
    """The files that the batch removes."""
    kind: str = "export"
    """The operation that made it: export, compact, erase, retain, or drop (see `export.LakeExport.drop`)."""

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "Batch":
        """The batch of an entry."""
        return cls(
            entry["number"],
            entry["first"],
            entry["end"],
            entry["rows"],
            _files(entry),
            _removed(entry),
            entry["kind"],
        )


@attrs.frozen
class Contents:
    """A state of a lake: all its files, and the batch that was the last one."""

    batch: int = 0
    end: int = 0
    """All rows of transactions before this one are there."""
    files: tuple[LakeFile, ...] = ()
    removed: tuple[RemovedFile, ...] = ()
    """Files that are no longer part of the lake, and were not yet deleted when the last checkpoint was written."""

    def add(self, batch: Batch) -> "Contents":
        """The state after one more batch."""
        gone = {file.path for file in batch.removed}
        files = tuple(file for file in self.files if file.path not in gone) if gone else self.files
        return Contents(batch.number, batch.end, (*files, *batch.files), (*self.removed, *batch.removed))


@attrs.frozen
class Manifest:
    """The manifest of one lake."""

    files: Files

    # -- identity

    def identity(self) -> Identity | None:
        """Which lake this is; None if there is none."""
        number = max(self._numbers(_IDENTITY), default=0)
        if not number:
            return None
        found = self._read(_path(number, _IDENTITY))
        origin = found["origin"]
        return Identity(
            UUID(found["lake"]),
            None if origin is None else Origin(**origin),
            found["format"],
            tuple(found["redact"]),
            tuple(found.get("columns", ())),
        )

    def create(
        self,
        origin: Origin | None,
        format: str = "parquet",
        redact: tuple[str, ...] = (),
        columns: tuple[str, ...] = (),
    ) -> Identity:
        """Make the folder a lake, or raise UsageError if it has something else in it."""
        taken = [name for name in FOLDERS.values() if self.files.exists(name)]
        # An export that was killed while it created the lake has left an unfinished file.
        taken += [_FOLDER for name in self.files.names(_FOLDER) if UNFINISHED not in name]
        if taken:
            raise UsageError(
                f"{self.files.root}: has {taken[0]} in it, but is not a lake of this version of trioboss"
            )
        return self.change(Identity(uuid4(), origin, format, redact, columns))

    def change(self, identity: Identity) -> Identity:
        """Let the lake have another identity, for instance another format; return the one that it has now.

        Two processes may do that at a time; then the change of one of them counts.
        """
        origin = None if identity.origin is None else attrs.asdict(identity.origin)
        entry = {
            "lake": str(identity.id),
            "origin": origin,
            "format": identity.format,
            "redact": identity.redact,
            "columns": identity.columns,
        }
        self._write(_path(max(self._numbers(_IDENTITY), default=0) + 1, _IDENTITY), entry)
        return self.identity() or identity

    def clean(self) -> None:
        """Delete files that a killed export was writing. One that still runs writes its file again."""
        for name in self.files.names(_FOLDER):
            if name.endswith(UNFINISHED):
                self.files.delete(f"{_FOLDER}/{name}")

    # -- contents

    def contents(self) -> Contents:
        """The state of the lake now."""
        for tries_left in reversed(range(_TRIES)):
            checkpoint, batches = self._list()
            try:
                return self._load(checkpoint, batches)
            except Exception:
                # An export may have replaced these entries by a checkpoint since they were listed.
                if not tries_left or self._list() == (checkpoint, batches):
                    raise
        raise AssertionError

    def add(self, batch: Batch) -> None:
        """Write the entry of a batch whose files are in place. It may have been written before."""
        self._write(_path(batch.number), attrs.asdict(batch))
        if batch.number % _CHECKPOINT_BATCHES == 0:
            self._write_checkpoint()

    def delete_removed(self, before: datetime | None = None) -> int:
        """Delete the files that were removed, or those removed before an instant; return how many there were."""
        removed = self.contents().removed
        old = [file for file in removed if before is None or datetime.fromisoformat(file.removed_on) < before]
        found = [file for file in old if self.files.exists(file.path)]
        for file in found:
            self.files.delete(file.path)
        return len(found)

    def _write_checkpoint(self) -> None:
        contents = self.contents()
        still_there = tuple(file for file in contents.removed if self.files.exists(file.path))
        contents = attrs.evolve(contents, removed=still_there)
        self._write(_path(contents.batch, _CHECKPOINT), attrs.asdict(contents))
        for number in self._numbers(_BATCH):
            if number <= contents.batch:
                self.files.delete(_path(number))
        for number in self._numbers(_CHECKPOINT):
            if number < contents.batch:
                self.files.delete(_path(number, _CHECKPOINT))

    def _list(self) -> tuple[int, list[int]]:
        """The last checkpoint (0: there is none), and the batches after it."""
        checkpoint = max(self._numbers(_CHECKPOINT), default=0)
        return checkpoint, [number for number in self._numbers(_BATCH) if number > checkpoint]

    def _load(self, checkpoint: int, batches: list[int]) -> Contents:
        contents = Contents()
        if checkpoint:
            entry = self._read(_path(checkpoint, _CHECKPOINT))
            contents = Contents(entry["batch"], entry["end"], _files(entry), _removed(entry))
        for number in batches:
            if number != contents.batch + 1:
                missing = self.files.at(_path(contents.batch + 1))
                raise UsageError(f"{missing}: is missing, but later batches are there")
            contents = contents.add(Batch.from_json(self._read(_path(number))))
        return contents

    def _numbers(self, suffix: str) -> Iterator[int]:
        for name in self.files.names(_FOLDER):
            if name[:10].isdigit() and name[10:] == suffix:
                yield int(name[:10])

    def _read(self, path: str) -> Any:
        entry = self.files.read(path)
        if entry.get("version") != _VERSION:
            raise UsageError(f"{self.files.at(path)}: was written by another version of trioboss")
        return entry

    def _write(self, path: str, value: Mapping[str, object]) -> None:
        self.files.write(path, {"version": _VERSION, **value, "written_on": datetime.now(UTC).isoformat()})


def _path(number: int, suffix: str = _BATCH) -> str:
    return f"{_FOLDER}/{number:010}{suffix}"


def _files(entry: Mapping[str, Any]) -> tuple[LakeFile, ...]:
    return tuple(LakeFile(**file) for file in entry["files"])


def _removed(entry: Mapping[str, Any]) -> tuple[RemovedFile, ...]:
    return tuple(RemovedFile(**file) for file in entry["removed"])
