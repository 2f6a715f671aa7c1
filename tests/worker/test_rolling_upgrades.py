"""Rolling upgrades of an app: old and new workers beside a deployment, and queues without a worker."""

import logging

import pytest

import trioboss
from trioboss.api.deploying import apply_plan, make_plan
from trioboss.cli.banner import log_banner


def make_app(*, schedule=False, more=(), **options):
    """A version of one app."""
    app = trioboss.App(label="mine")

    async def handler(job): ...

    task = app.worker("orders", **options)(handler)
    if schedule:
        app.schedule("0 3 * * *")(task)
    for name in more:
        app.worker(name)(handler)
    return app


async def migrate(boss, app, **options):
    declaration = app.declaration()
    changes = await make_plan(boss, declaration, **options)
    await apply_plan(boss, declaration, changes, record=True)
    return [str(change) for change in changes]


@pytest.fixture
def app_log(caplog):
    """The messages of the app's logger."""
    caplog.set_level(logging.INFO, "trioboss.app")

    def read():
        lines = [(r.levelname, r.getMessage()) for r in caplog.records if r.name == "trioboss.app"]
        caplog.clear()
        return lines

    return read


async def test_a_worker_of_an_app_that_was_never_deployed_logs_what_it_changes(boss, app_log):
    await make_app(retry_limit=5).start(boss)
    await make_app(retry_limit=6, schedule=True).start(boss)

    assert app_log() == [
        ("INFO", "app 'mine': create queue 'orders': retry_limit=5"),
        ("INFO", "app 'mine': update queue 'orders': retry_limit 5 → 6"),
        ("INFO", "app 'mine': create schedule 'orders': 0 3 * * * (UTC)"),
    ]


async def test_a_worker_that_may_not_declare_names_the_command(boss, app_log):
    with pytest.raises(
        trioboss.UsageError, match=r"queue 'orders' of the app does not exist, .* `trioboss migrate"
    ):
        await make_app().start(boss, declare=False)
    await boss.create_queue("orders")

    await make_app(schedule=True).start(boss, declare=False)

    ((level, message),) = app_log()
    assert level == "WARNING"
    assert "differences to this version: create schedule 'orders'" in message
    assert await boss.get_schedules() == []


async def test_the_banner_marks_a_schedule_that_the_database_does_not_have(boss, caplog):
    caplog.set_level(logging.INFO, "trioboss.worker")
    app = make_app(schedule=True)

    await log_banner(boss, app, None, None)
    await migrate(boss, app)
    await log_banner(boss, app, None, None)

    banners = [record.getMessage() for record in caplog.records if record.name == "trioboss.worker"]
    missing, kept = (banner.splitlines()[-1] for banner in banners)
    assert missing == "  schedules  orders  0 3 * * * (UTC), not in the database"
    assert kept == "  schedules  orders  0 3 * * * (UTC)"


async def test_a_new_worker_before_its_deployment_starts_unless_its_queue_is_missing(boss, app_log):
    await migrate(boss, make_app(retry_limit=5))

    await make_app(retry_limit=6).start(boss)
    ((level, message),) = app_log()
    assert level == "WARNING"
    assert message.startswith(
        "the database was migrated for another version of app 'mine'; this worker changes"
    )
    assert (await boss.get_queue("orders")).retry_limit == 5

    with pytest.raises(trioboss.UsageError, match="queue 'refunds' of the app does not exist"):
        await make_app(more=["refunds"]).start(boss)


async def test_an_old_worker_runs_without_the_queue_that_a_deployment_has_removed(boss, app_log):
    await migrate(boss, make_app(more=["refunds"]))
    await migrate(boss, make_app())
    await boss.delete_queue("refunds")

    await make_app(more=["refunds"]).start(boss)

    assert [worker.queue for worker in boss.statistics().workers] == ["orders"]
    assert app_log()[-1] == (
        "WARNING",
        "queue 'refunds' was deleted: no worker is started for it; restart with the deployed version",
    )
    assert await boss.get_queue("refunds") is None


async def test_an_old_worker_works_on_a_queue_that_was_made_again_with_another_policy(boss, app_log):
    await migrate(boss, make_app(policy="singleton"))
    await boss.delete_queue("orders")
    await migrate(boss, make_app(policy="stately"))

    await make_app(policy="singleton").start(boss)

    assert "policy stately → singleton" in app_log()[-1][1]


async def test_an_operators_change_stays_until_the_next_deployment(boss, app_log):
    await migrate(boss, make_app(retry_limit=5))
    await boss.update_queue("orders", retry_limit=9)

    await make_app(retry_limit=5).start(boss)
    ((level, message),) = app_log()
    assert (level, "it was changed since its deployment" in message) == ("INFO", True)
    assert (await boss.get_queue("orders")).retry_limit == 9

    assert await migrate(boss, make_app(retry_limit=5)) == ["update queue 'orders': retry_limit 9 → 5"]


async def test_a_rollback_of_the_app_is_another_deployment(boss, app_log):
    """An option that only the newer version declares returns to its default; the older version is the deployed one."""
    old, new = make_app(retry_limit=5), make_app(retry_limit=6, expire_in=60, retry_backoff=True)
    await migrate(boss, old)
    await migrate(boss, new)

    changes = await migrate(boss, old)

    assert changes == [
        "update queue 'orders': retry_limit 6 → 5, expire_in 60.0 → 900.0, retry_backoff True → False"
    ]
    queue = await boss.get_queue("orders")
    assert (queue.expire_in, queue.retry_backoff, queue.retry_jitter) == (900, False, 0)
    await old.start(boss)
    assert app_log() == []
    await new.start(boss)
    assert "after this one" in app_log()[0][1]


# -- queues without a worker


async def test_a_dead_letter_queue_that_is_only_named_is_created_with_the_app(boss):
    app = make_app(dead_letter="dead")

    assert await migrate(boss, app) == [
        "create queue 'dead'",
        "create queue 'orders': dead_letter='dead'",
    ]
    assert await migrate(boss, app) == []
    await app.start(boss)


async def test_a_queue_can_be_declared_without_a_worker(boss):
    app = make_app(dead_letter="dead")
    app.queue("dead", retention=3600)
    app.queue("dead", retry_limit=0)

    await app.start(boss)

    dead = await boss.get_queue("dead")
    assert (dead.retention, dead.retry_limit) == (3600, 0)
    with pytest.raises(TypeError, match="queue: unexpected option 'retries'"):
        app.queue("other", retries=1)


async def test_a_missing_dead_letter_queue_is_explained(boss):
    with pytest.raises(
        trioboss.UnknownQueue, match=r"dead letter queue of 'q', .*`trioboss create-queue gone`"
    ):
        await boss.create_queue("q", dead_letter="gone")
