"""Keeps a table of Delta Lake in each folder of a lake, so that every engine reads whole batches, and older versions.

The files are those of the lake; the table's log (`jobs/_delta_log`) is one more manifest of them. The lake's own
manifest decides: after each batch the log gets one commit, with the files that it lacks or has too many. The commit
has the number of the batch as the version of an application transaction, so that a batch is in the log once, wherever
an export was killed. Only the commands of the pipeline may change such a lake; others read it.

The log has no statistics of columns: they would repeat values of rows, which may be erased later.
"""

import json
import time

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.transaction import AddAction, RemoveAction
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DateType, StructField, StructType

from trioboss.errors import UsageError
from trioboss.pipeline.columns import TABLES
from trioboss.pipeline.files import plain_address
from trioboss.pipeline.manifest import FOLDERS, Contents, Identity, Manifest

__all__ = ["list_version", "synchronize"]

_SETTINGS = {"delta.logRetentionDuration": "interval 30 days"}
_ROWS_STAY = "compact"
"""The kind of batch after which the table has the same rows, in other files."""


def synchronize(manifest: Manifest, identity: Identity, kind: str = "export") -> None:
    """Bring the tables up to date with the manifest. If nothing was killed, this is one commit in each table."""
    contents = manifest.contents()
    for table, folder in FOLDERS.items():
        delta = _open(manifest, table, folder)
        if (delta.transaction_version(_application(identity)) or 0) < contents.batch:
            _commit(delta, folder, contents, identity, kind)


def list_version(manifest: Manifest, folder: str, version: int) -> list[str]:
    """The paths of the files that a table had in a version, or raise UsageError."""
    try:
        delta = DeltaTable(_address(manifest, folder), version=version)
    except Exception as error:
        raise UsageError(f"version: {folder} has no version {version}: {error}") from None
    return [f"{folder}/{path}" for path in _paths(delta)]


def _open(manifest: Manifest, table: str, folder: str) -> DeltaTable:
    """The table of a folder, made if it is not there, with all columns that its rows can have."""
    schema = _schema(table)
    address = _address(manifest, folder)
    delta = DeltaTable.create(
        address, schema, mode="ignore", partition_by=["date"], configuration=_SETTINGS, name=folder
    )
    known = {field.name for field in delta.schema().fields}
    missing = [field for field in schema.fields if field.name not in known]
    if missing:
        # A later version of trioboss has more columns: they are null in older files.
        delta.alter.add_columns(missing)
        delta = DeltaTable(address)
    return delta


def _address(manifest: Manifest, folder: str) -> str:
    return plain_address(manifest.files.at(folder))


def _schema(table: str) -> Schema:
    fields = [*TABLES[table].schema().fields, StructField("date", DateType())]
    return Schema.from_arrow(to_arrow_schema(StructType(fields), timezone="UTC"))


def _commit(delta: DeltaTable, folder: str, contents: Contents, identity: Identity, kind: str) -> None:
    wanted = {file.path.removeprefix(f"{folder}/"): file for file in contents.files if file.folder == folder}
    found = _paths(delta)
    now, changes_rows = round(time.time() * 1000), kind != _ROWS_STAY
    actions: list[AddAction | RemoveAction] = [
        AddAction(
            path, file.bytes, {"date": file.day}, now, changes_rows, json.dumps({"numRecords": file.rows})
        )
        for path, file in wanted.items()
        if path not in found
    ]
    actions += [
        RemoveAction(path, changes_rows, now, size, {"date": path.partition("/")[0].removeprefix("date=")})
        for path, size in found.items()
        if path not in wanted
    ]
    properties = CommitProperties(
        custom_metadata={"trioboss": {"kind": kind, "batch": contents.batch, "exported": contents.end}},
        app_transactions=[Transaction(_application(identity), contents.batch)],
    )
    delta.create_write_transaction(
        actions, "append", delta.schema(), partition_by=["date"], commit_properties=properties
    )


def _paths(delta: DeltaTable) -> dict[str, int]:
    """The files of a table with their sizes, by the paths relative to its folder."""
    actions = pa.table(delta.get_add_actions(flatten=True))
    return dict(zip(actions["path"].to_pylist(), actions["size_bytes"].to_pylist(), strict=True))


def _application(identity: Identity) -> str:
    return f"trioboss/{identity.id}"
