"""`trioboss grants`: the rights that producers, workers, readers and the admin need, and no others."""

import argparse

from trioboss.api.sync import SyncBoss
from trioboss.cli.output import print_error
from trioboss.errors import UsageError
from trioboss.postgres.errors import is_role_unknown
from trioboss.sql.grants import ROLES, grant_plans, grant_text

__all__ = ["grants"]


def grants(args: argparse.Namespace) -> int:
    """Print the SQL for the given roles, and execute it if asked to."""
    roles = {kind: getattr(args, kind) for kind in ROLES if getattr(args, kind) is not None}
    if not roles:
        raise UsageError(f"grants: no role is given: use {', '.join('--' + kind for kind in ROLES)}")
    try:
        print(grant_plans(args.schema, roles), end="")
    except ValueError as error:
        raise UsageError(str(error)) from None
    if args.apply:
        _apply(args, roles)
    return 0


def _apply(args: argparse.Namespace, roles: dict[str, str]) -> None:
    with SyncBoss(args.dsn, schema=args.schema, migrate=False) as boss, boss.transaction() as conn:
        try:
            conn.execute(grant_text(args.schema, roles).encode())
        except Exception as error:
            if not is_role_unknown(error):
                raise
            # Without the lines about where it happened.
            raise UsageError(f"{str(error).splitlines()[0]}: create it first") from None
    print_error("the rights are granted")
