"""`trioboss migrate MODULE:APP`: the schema, queues, options and schedules of an app as one plan."""

import argparse
from collections.abc import Sequence

import trio

from trioboss.api.boss import open_boss
from trioboss.api.deploying import apply_plan, check_prunable, make_plan, plan_new
from trioboss.cli.loading import load_app
from trioboss.cli.opening import open_sync
from trioboss.cli.output import print_error
from trioboss.cli.schema import advise_grants
from trioboss.model.deployment import Action, Change, Declaration
from trioboss.model.texts import count, printable
from trioboss.sql.plans import LATEST

__all__ = ["run_deploy"]

_CONNECT_WAIT = 5.0  # seconds to wait for a server that cannot be reached


def run_deploy(args: argparse.Namespace) -> int:
    """Show the plan, and carry it out unless --plan is given."""
    app = load_app(args.app)
    declaration = app.declaration()
    if args.prune:
        check_prunable(declaration)  # before the schema is migrated
    with open_sync(args, migrate=False) as boss:
        found = boss.schema_version()
        changes = plan_new(boss, declaration)
    if (found or 0) < LATEST:
        print(
            f"{'install' if found is None else 'migrate'} schema {args.schema!r}: version {found or 0} → {LATEST}"
        )
        if args.plan:
            # The queues of an older schema cannot be compared before it is migrated.
            action = "create" if found is None else "create or update"
            for change in changes:
                print(printable(change.describe(action)))
            return 0
    code = trio.run(_deploy, args, declaration)
    if found is not None and found < LATEST:
        with open_sync(args, migrate=False) as boss:
            advise_grants(boss)
    return code


async def _deploy(args: argparse.Namespace, app: Declaration) -> int:
    async with open_boss(
        args.dsn,
        schema=args.schema,
        migrate=not args.plan,
        create_schema=not args.no_create_schema,
        supervise=False,
        schedule=False,
        connect_wait=_CONNECT_WAIT,
    ) as boss:
        changes = await make_plan(boss, app, adopt=args.adopt, prune=args.prune)
        _print_plan(changes, app)
        if not args.plan:
            await apply_plan(boss, app, changes, record=True)
            if changes:
                done = sum(change.action.changes_something for change in changes)
                print(f"{count(done, 'change')} made" if done else "no change was made")
    left = [change for change in changes if change.action is Action.LEAVE]
    if left:
        stays = count(len(left), "difference", "stays", "stay")
        print_error(f"{stays}: --adopt changes what {app.label!r} did not make, too")
    return 1 if left else 0


def _print_plan(changes: Sequence[Change], app: Declaration) -> None:
    for change in changes:
        print(printable(str(change)))
    if not changes:
        queues, schedules = count(len(app.queues), "queue"), count(len(app.schedules), "schedule")
        print(f"nothing to do: {queues} and {schedules} are as declared")
