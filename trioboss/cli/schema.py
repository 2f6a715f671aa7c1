"""The commands about the schema itself: migrate, version, rollback, uninstall."""

import argparse
from importlib import import_module

from trioboss._version import __version__
from trioboss.api.sync import SyncBoss
from trioboss.cli.opening import open_sync
from trioboss.cli.output import confirm, print_error, print_json
from trioboss.errors import SchemaOutOfDate, UsageError
from trioboss.postgres.blocking import run_script_blocking
from trioboss.postgres.errors import explain_database_error, find_dependents
from trioboss.postgres.operation import Script
from trioboss.sql import Catalog
from trioboss.sql.plans import LATEST, lock_text, migration_plans, rollback_plans, rollback_text

__all__ = ["advise_grants", "migrate", "rollback", "uninstall", "version"]


def migrate(args: argparse.Namespace) -> int:
    """Create or update the schema; with an app also its queues and schedules."""
    if args.app is not None:
        # An app needs trio, and a module of the user.
        deployed: int = import_module("trioboss.cli.deploying").run_deploy(args)
        return deployed
    if args.prune or args.adopt:
        raise UsageError("migrate: --prune and --adopt are about an app: name it as MODULE:APP")
    if args.plan:
        print(migration_plans(args.schema, _known_version(args)), end="")
        return 0
    with open_sync(args, migrate=False) as boss:
        found = boss.schema_version()
    with SyncBoss(args.dsn, schema=args.schema, create_schema=not args.no_create_schema) as boss:
        version = boss.schema_version()
        print(f"schema {boss.schema!r} is at version {version}")
        if found is not None and found != version:
            advise_grants(boss)
    return 0


def advise_grants(boss: SyncBoss) -> None:
    """After a migration: new tables need rights, if roles have rights on the old ones."""
    with boss.unchecked_transaction() as conn:
        rows = conn.execute(Catalog(boss.schema).get("describe_rights").text.encode()).fetchall()
    roles = sorted({role for role, *_ in rows} - {"PUBLIC"})
    if roles:
        listed = ", ".join(map(repr, roles[:10]))
        print(
            f"roles {listed} have rights here, and none on new tables: run `trioboss grants … --apply` again"
        )


def version(args: argparse.Namespace) -> int:
    """Print the versions; exit code 1 if they do not fit."""
    found = None
    try:
        with open_sync(args, migrate=False) as boss:
            found = boss.schema_version()
            boss.get_queues()
        fits = True
    except SchemaOutOfDate:
        fits = False
    if args.json:
        print_json(
            {"trioboss": __version__, "schema": args.schema, "version": found, "needs": LATEST, "fits": fits}
        )
    else:
        state = "is not installed" if found is None else f"is at version {found}"
        remedy = "" if fits else "; run `trioboss migrate`" if (found or 0) < LATEST else "; upgrade trioboss"
        print(f"trioboss {__version__}, which needs schema version {LATEST}")
        print(f"schema {args.schema!r} {state}{remedy}")
    return 0 if fits else 1


def rollback(args: argparse.Namespace) -> int:
    """Take the schema back to an older version."""
    return _roll_back(args, args.to)


def uninstall(args: argparse.Namespace) -> int:
    """Remove everything of trioboss. Things of others in the schema stay, and the schema with them."""
    return _roll_back(args, 0)


def _roll_back(args: argparse.Namespace, to: int | None) -> int:
    found = _known_version(args)
    if found == 0:
        print_error(f"schema {args.schema!r} is not installed: nothing to do")
        return 1
    try:
        text = rollback_plans(args.schema, found, to)
        script = rollback_text(args.schema, found, to)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if args.plan:
        print(text, end="")
        return 0
    target = found - 1 if to is None else to
    question = (
        f"take schema {args.schema!r} back from version {found} to {target}, and lose what only {found} holds"
    )
    if target == 0:
        question = f"remove all queues, jobs and history of schema {args.schema!r}"
    if not confirm(question, yes=args.yes):
        print_error("nothing was changed")
        return 1
    return _execute_rollback(args, script, target)


def _execute_rollback(args: argparse.Namespace, script: str, target: int) -> int:
    with open_sync(args, migrate=False) as boss:
        try:
            with boss.unchecked_transaction() as conn:
                run_script_blocking(conn, Script(lock_text(args.schema) + script))
        except Exception as error:
            dependents = find_dependents(error)
            if dependents is None:
                raise
            print_error(f"{explain_database_error(error)}: {dependents}; nothing was changed")
            return 1
    if target:
        print(f"schema {args.schema!r} is at version {target}")
    else:
        print(f"everything of trioboss is removed from schema {args.schema!r}")
    return 0


def _known_version(args: argparse.Namespace) -> int:
    """The version of the schema: 0 if it is not installed. A version that is newer than this program is refused."""
    with open_sync(args, migrate=False) as boss:
        found = boss.schema_version() or 0
    if found > LATEST:
        raise SchemaOutOfDate(args.schema, found, LATEST)
    return found
