"""`trioboss plans`: the SQL of the schema. It needs no database, and imports no driver."""

import argparse

from trioboss.errors import UsageError
from trioboss.sql.plans import LATEST, migration_plans, rollback_plans

__all__ = ["plans"]


def plans(args: argparse.Namespace) -> int:
    """Print SQL without a database."""
    latest = LATEST if args.from_version is None else args.from_version
    try:
        if args.plan == "install":
            text = migration_plans(args.schema, 0)
        elif args.plan == "migrate":
            text = migration_plans(args.schema, args.from_version or 0)
        else:
            text = rollback_plans(args.schema, latest, 0 if args.plan == "uninstall" else args.to)
    except ValueError as error:
        raise UsageError(str(error)) from None
    print(text, end="")
    return 0
