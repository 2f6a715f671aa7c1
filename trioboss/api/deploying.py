"""Brings the queues and schedules of an app to what it declares: when it is started, and for `trioboss migrate`."""

import logging
from collections.abc import Sequence

from trioboss.api.boss import Boss
from trioboss.errors import UsageError
from trioboss.model.deployment import Action, Change, Declaration
from trioboss.postgres.errors import is_permission_denied
from trioboss.postgres.executor import execute_in

__all__ = ["apply_plan", "deploy", "make_plan"]

_logger = logging.getLogger("trioboss.app")


async def make_plan(
    boss: Boss, app: Declaration, *, adopt: bool = False, prune: bool = False
) -> list[Change]:
    """What has to change so that everything is as the app declares it."""
    return await boss._execute(boss._store.deploying.plan(app, adopt=adopt, prune=prune))


async def apply_plan(boss: Boss, app: Declaration, changes: Sequence[Change]) -> None:
    """Carry out a plan, all or nothing."""
    if any(change.action.changes_something for change in changes):
        async with boss.transaction() as conn:
            await execute_in(conn, boss._store.deploying.apply(app, changes), boss._own_pool)


async def deploy(boss: Boss, app: Declaration, path: str) -> None:
    """Create and change what the app needs. ``path``: how the command line finds the app."""
    changes = await make_plan(boss, app)
    for change in changes:
        if change.action is Action.LEAVE:
            _logger.warning("%s; `trioboss migrate %s --adopt` changes it", change, path)
        elif change.action is Action.REPORT:
            _logger.info("%s", change)
    try:
        await apply_plan(boss, app, changes)
    except Exception as error:
        if not is_permission_denied(error):
            raise
        needed = "; ".join(str(change) for change in changes if change.action.changes_something)
        raise UsageError(
            f"the app needs changes that this database role may not make ({needed}): "
            f"run `trioboss migrate {path}` as the role that owns schema {boss.schema!r}"
        ) from error
