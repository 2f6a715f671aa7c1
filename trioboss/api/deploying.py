"""Brings the queues and schedules of an app to what it declares: when it is started, and for `trioboss migrate`."""

import logging
from collections.abc import Collection, Sequence

from trioboss.api.boss import Boss
from trioboss.api.sync import SyncBoss
from trioboss.errors import UsageError
from trioboss.model.deployment import Action, Change, Declaration, Standing
from trioboss.postgres.errors import is_permission_denied
from trioboss.postgres.executor import execute_in

__all__ = ["apply_plan", "check_prunable", "deploy", "make_plan", "plan_new"]

_logger = logging.getLogger("trioboss.app")


def check_prunable(app: Declaration) -> None:
    """Raise UsageError for an app without a label of its own: what has its label may belong to another app."""
    if not app.has_own_label:
        raise UsageError(
            f"prune: the app has no label of its own: {app.label!r} is the name of its module, and may be that of "
            f"another app in this database, whose schedules would be deleted; declare it as App(label={app.label!r}), "
            "or with another label that no other app has"
        )


async def make_plan(
    boss: Boss, app: Declaration, *, adopt: bool = False, prune: bool = False, compare: bool = False
) -> list[Change]:
    """The changes that bring everything to what the app declares. ``compare``: nothing will be changed."""
    if prune:
        check_prunable(app)
    plan = boss._store.deploying.plan(app, adopt=adopt, prune=prune, compare=compare)
    return await boss._execute(plan)


def plan_new(boss: SyncBoss, app: Declaration) -> list[Change]:
    """The changes for a schema that is not there yet."""
    return boss._store.deploying.plan_new(app)


async def apply_plan(
    boss: Boss, app: Declaration, changes: Sequence[Change], *, record: bool = False
) -> None:
    """Carry out a plan, all or nothing. ``record``: this version of the app is the deployed one from now on, and
    workers change nothing for it.
    """
    if not record and not any(change.action.changes_something for change in changes):
        return
    async with boss.transaction() as conn:
        await execute_in(conn, boss._store.deploying.apply(app, changes), boss._own_pool)
        if record:
            await execute_in(conn, boss._store.deploying.record(app), boss._own_pool)


async def deploy(
    boss: Boss, app: Declaration, path: str, *, needed: Collection[str], change: bool = True
) -> frozenset[str]:
    """Prepare the start of an app; return the queues that are missing, whose workers cannot be started.

    An app that `trioboss migrate` never deployed gets what it declares, unless ``change`` is False. For any other
    nothing is changed: the deployment decides, and not the worker that happens to start last. ``needed``: the queues of
    the workers that will be started. ``path``: how the command line finds the app.
    """
    standing = await boss._execute(boss._store.deploying.get_standing(app))
    changes = await make_plan(boss, app, compare=standing is Standing.REPLACED)
    for each in changes:
        if each.action is Action.LEAVE:
            _logger.warning("%s; `trioboss migrate %s --adopt` changes it", each, path)
    wanted = [each for each in changes if each.action.changes_something]
    if change and standing is Standing.NEVER_DEPLOYED:
        for each in changes:
            if each.action is Action.REPORT:
                _logger.info("%s", each)
        await _change(boss, app, path, wanted)
        return frozenset()
    if not wanted:
        return frozenset()
    return _leave(boss, app, path, wanted, standing, needed)


async def _change(boss: Boss, app: Declaration, path: str, changes: Sequence[Change]) -> None:
    """Create and change what the app needs."""
    try:
        await apply_plan(boss, app, changes)
    except Exception as error:
        if not is_permission_denied(error):
            raise
        raise UsageError(
            f"the app needs changes that this database role may not make ({_listed(changes)}): "
            f"{_remedy(boss, path)}"
        ) from error
    for each in changes:
        _logger.info("app %r: %s", app.label, each)


def _leave(
    boss: Boss,
    app: Declaration,
    path: str,
    changes: Sequence[Change],
    standing: Standing,
    needed: Collection[str],
) -> frozenset[str]:
    """Start with the database as it is, and log how it differs from what the app declares."""
    missing = {each.queue for each in changes if each.kind == "queue" and each.action is Action.CREATE}
    missing &= set(needed)
    # The queue of a replaced version may have been deleted on purpose. For any other version this is a deployment
    # whose first step was forgotten, which has to fail before the old workers are stopped.
    if missing and standing is not Standing.REPLACED:
        raise UsageError(
            f"queue {min(missing)!r} of the app does not exist, and this worker creates no queue "
            f"({_listed(changes)}): {_remedy(boss, path)}"
        )
    same_name = (
        "" if app.has_own_label else ", or for another app of that name (give each one an App(label=…))"
    )
    reasons = {
        Standing.NEVER_DEPLOYED: "the database is not as app %r declares it",
        Standing.DEPLOYED: "the database is not as app %r declares it: it was changed since its deployment",
        Standing.REPLACED: "the database was migrated for another version of app %r, after this one"
        + same_name,
        Standing.OTHER_DEPLOYED: "the database was migrated for another version of app %r" + same_name,
    }
    level = logging.INFO if standing is Standing.DEPLOYED else logging.WARNING
    _logger.log(
        level,
        f"{reasons[standing]}; this worker changes nothing; differences to this version: %s",
        app.label,
        _listed(changes),
    )
    for name in sorted(missing):
        _logger.warning(
            "queue %r was deleted: no worker is started for it; restart with the deployed version", name
        )
    return frozenset(missing)


def _listed(changes: Sequence[Change]) -> str:
    return "; ".join(map(str, changes))


def _remedy(boss: Boss, path: str) -> str:
    return f"run `trioboss migrate {path}` as the role that owns schema {boss.schema!r}"
