"""Compares a lake with the history of its database, without the code of the pipeline: psycopg, pyarrow and JSON.

`tests/benchmarks/test_bench_kills.py` plants each kind of damage and sees it found.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
import psycopg
import pyarrow.parquet as pq
from deltalake import DeltaTable

__all__ = ["Deviations", "check_lake", "check_load"]

_TABLES = {"jobs": ("archive", "id", "completed_on"), "attempts": ("attempt", "job_id", "ended_on")}
_Row = tuple[str, str, int, str]


@attrs.frozen
class Deviations:
    """How many rows are missing, there twice, or of nowhere; and what readers of the Delta tables see differently."""

    lost: int = 0
    doubled: int = 0
    unknown: int = 0
    differing: int = 0

    def __add__(self, other: "Deviations") -> "Deviations":
        names = attrs.fields_dict(Deviations)
        return Deviations(*(getattr(self, name) + getattr(other, name) for name in names))

    @property
    def is_good(self) -> bool:
        """Nothing is wrong."""
        return self == Deviations()


def check_lake(lake: Path, dsn: str, *, whole: bool, gone: Iterable[str] = ()) -> Deviations:
    """Compare a lake with history.

    ``whole``: the lake has all of history. Otherwise it has all rows of the transactions before the last one that its
    manifest names, as after any kill: a batch is there as a whole or not at all. ``gone`` are queues that are being
    erased: their rows may be missing on either side.
    """
    manifest = _read_manifest(lake)
    end = None if whole else manifest["end"]
    deviations = Deviations()
    with psycopg.connect(dsn) as database:
        for folder in _TABLES:
            files = [file["path"] for file in manifest["files"] if file["path"].startswith(f"{folder}/")]
            found = _rows_of_files(lake, folder, files)
            expected = _rows_of_history(database, folder, end)
            skipped = set(gone)
            deviations += compare(
                (row for row in found if row[1] not in skipped),
                (row for row in expected if row[1] not in skipped),
            )
            if whole and (lake / folder / "_delta_log").exists():
                table = DeltaTable(str(lake / folder)).file_uris()
                differing = {Path(uri).name for uri in table} ^ {Path(path).name for path in files}
                deviations += Deviations(differing=len(differing))
    return deviations


def compare(found: Iterable[_Row], expected: Iterable[_Row]) -> Deviations:
    """Compare rows with those that are to be there."""
    there, wanted = Counter(found), Counter(expected)
    return Deviations(
        lost=sum((wanted - there).values()),
        doubled=sum(count - 1 for count in there.values()),
        unknown=len(there.keys() - wanted.keys()),
    )


def check_load(dsn: str, queue: str, rows: int, *, ended: bool) -> Deviations:
    """Compare a queue with the rows 0, 1, … of a load: all of them are jobs or, if it has not ``ended``, none is."""
    with psycopg.connect(dsn) as database:
        found = Counter(
            n
            for (n,) in database.execute(
                "select (data ->> 'n')::int from trioboss.job where name = %s", [queue]
            )
        )
    wanted = set(range(rows)) if ended or found else set()
    return Deviations(
        lost=len(wanted - found.keys()),
        doubled=sum(count - 1 for count in found.values()),
        unknown=len(found.keys() - set(range(rows))),
    )


def _read_manifest(lake: Path) -> dict[str, Any]:
    """The files that the entries of the manifest name, and the transaction before which all is there."""
    folder = lake / "_manifest"
    checkpoints = sorted(folder.glob("*.checkpoint.json"))
    state: dict[str, Any] = {"end": 0, "files": []}
    covered = 0
    if checkpoints:
        state = json.loads(checkpoints[-1].read_text())
        covered = int(checkpoints[-1].name[:10])
    for path in sorted(path for path in folder.glob("*.json") if path.name[10:] == ".json"):
        if int(path.name[:10]) > covered:
            state = _apply(state, json.loads(path.read_text()))
    return state


def _apply(state: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    removed = {file["path"] for file in entry["removed"]}
    kept = [file for file in state["files"] if file["path"] not in removed]
    return {"end": entry["end"], "files": kept + entry["files"]}


def _rows_of_files(lake: Path, folder: str, files: Iterable[str]) -> list[_Row]:
    """Of each row: its id, its queue, its transaction, and the day as its folder is named."""
    id = _TABLES[folder][1]
    rows = []
    for path in files:
        day = path.split("/")[1].removeprefix("date=")
        found = pq.ParquetFile(lake / path).read([id, "queue", "xid"]).to_pylist()
        rows += [(row[id], row["queue"], row["xid"], day) for row in found]
    return rows


def _rows_of_history(database: psycopg.Connection[Any], folder: str, end: int | None) -> list[_Row]:
    table, id, time = _TABLES[folder]
    day = f"({time} at time zone 'UTC')::date::text"
    statement = f"select {id}::text, queue, xid::text::bigint, {day} from trioboss.{table}"
    if end is not None:
        statement += f" where xid < '{int(end)}'"
    return database.execute(statement.encode()).fetchall()
