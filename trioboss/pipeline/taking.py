"""Takes a lake for an export or a change: the lake is this database's, and no other export has it."""

import re

import attrs
from pyspark.sql import SparkSession

from trioboss.errors import UsageError
from trioboss.pipeline.database import Database
from trioboss.pipeline.export import ExportFenced, LakeExport, Moves, Sizes
from trioboss.pipeline.manifest import Identity, Manifest, Origin
from trioboss.pipeline.options import Secret
from trioboss.postgres.errors import is_lock_not_available

__all__ = ["take_lake"]


def take_lake(
    spark: SparkSession,
    database: Database,
    manifest: Manifest,
    dsn: Secret,
    *,
    adopt: bool = False,
    format: str | None = None,
    redact: tuple[str, ...] | None = None,
    columns: tuple[str, ...] | None = None,
    drop_pending: bool = False,
    sizes: Sizes | None = None,
) -> LakeExport:
    """Take a lake for an export or a change, or raise UsageError: it is another database's, or is taken.

    A lake that does not exist is created, in this ``format``, and one that exists is converted to it (None: stays as
    it is). ``redact``: from now on exports leave this out; ``columns``: and all columns but these (None: as before).
    ``adopt``: the lake is this database's although its identity has changed. ``drop_pending``: drop a batch that was
    committed and not finished.
    """
    if format == "delta":
        _check_delta_path(manifest.files.root)
    identity = _identify(database, manifest, adopt=adopt, format=format, redact=redact, columns=columns)
    _lock(database, identity, manifest)
    contents = manifest.contents()
    ((token, batch, pending),) = database.run(
        "take_lake",
        lake=identity.id,
        address=manifest.files.root,
        batch=contents.batch,
        exported=contents.end,
    )
    export = LakeExport(spark, database, manifest, identity, dsn, token, sizes or Sizes())
    if pending is not None:
        moves = Moves.from_json(pending)
        export.end = contents.end
        export.drop(moves.batch) if drop_pending else export.finish(moves)
        contents = manifest.contents()
    if contents.batch != batch:
        raise UsageError(
            f"{manifest.files.root}: the lake has {contents.batch} batches, and the database has {batch} of them: "
            "one was restored from a backup; export to a new lake"
        )
    export.batch, export.end = contents.batch, contents.end
    export.clean()
    export.synchronize()
    return export


def _lock(database: Database, identity: Identity, manifest: Manifest) -> None:
    """Keep other exports from the lake until the session ends. The lock only spares a second export its work: the
    fence is the token that the statement `take_lake` raises, also against an export that has lost its session.
    """
    try:
        database.run("lock_lake", lake=identity.id)
    except Exception as error:
        if not is_lock_not_available(error):
            raise
        raise UsageError(f"{manifest.files.root}: another export to this lake is running") from error


def _identify(
    database: Database,
    manifest: Manifest,
    *,
    adopt: bool,
    format: str | None,
    redact: tuple[str, ...] | None,
    columns: tuple[str, ...] | None,
) -> Identity:
    """Which lake this is, once it is certain that the history of this database belongs into it."""
    ((server, number),) = database.run("get_identity")
    origin = Origin(server, number, database.catalog.schema)
    with database.transaction():
        # Two exports must not both create the lake.
        database.run("lock_lake_creation")
        identity = manifest.identity() or manifest.create(
            origin, format or "parquet", redact or (), columns or ()
        )
        wanted = attrs.evolve(
            identity,
            origin=origin,
            format=format or identity.format,
            redact=identity.redact if redact is None else redact,
            columns=identity.columns if columns is None else columns,
        )
        if identity.format == "delta" and wanted.format != "delta":
            raise UsageError(f"{manifest.files.root}: the lake is a Delta lake, and stays one")
        if identity.origin != origin:
            _check_adoption(database, manifest, identity, origin, adopt=adopt)
        if wanted != identity and manifest.change(wanted) != wanted:
            raise ExportFenced(manifest.files.root)
        return wanted


def _check_adoption(
    database: Database, manifest: Manifest, identity: Identity, origin: Origin, *, adopt: bool
) -> None:
    """Raise UsageError unless the lake is to be adopted, and this database has exported to it."""
    problem = (
        f"{manifest.files.root}: the lake has the history of {_describe(identity.origin)}, and this is "
        f"{_describe(origin)}; export to a lake of its own"
    )
    is_of_schema = identity.origin is not None and identity.origin.schema == origin.schema
    if not adopt or not is_of_schema:
        raise UsageError(f"{problem}, or adopt this one if the server was upgraded by pg_upgrade")
    # A database that pg_upgrade has upgraded still has its tables.
    if identity.id not in [id for id, _ in database.run("list_lakes")]:
        raise UsageError(
            f"{problem}: this one cannot be adopted, because this database has never exported to it"
        )


def _check_delta_path(root: str) -> None:
    if found := re.search(r"%[0-9A-Fa-f]{2}", root):
        raise UsageError(
            f"{root}: cannot be a Delta lake, because the package deltalake takes {found[0]} for another character; "
            "use another path"
        )


def _describe(origin: Origin | None) -> str:
    if origin is None:
        return "no database: it was made by `synth`"
    return f"schema {origin.schema} of database {origin.database} on server {origin.server}"
