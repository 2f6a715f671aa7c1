"""Options that no call has: the error names the nearest, also for the names of pg-boss and of other manuals."""

import inspect
import re
from unittest.mock import AsyncMock
from uuid import UUID

import pytest

import trioboss
import trioboss.dashboard


@pytest.fixture
def app():
    return trioboss.App()


def test_an_unknown_option_is_answered_with_the_nearest_and_all_others(app):
    with pytest.raises(
        TypeError, match=r"'concurency': did you mean 'concurrency'\? The options are asyncio, auto"
    ):
        app.worker("email", concurency=5)
    with pytest.raises(TypeError, match=r"'timezone'.*The options are .*\btz\b"):
        app.schedule("0 3 * * *", timezone="UTC")


@pytest.mark.parametrize(
    ("call", "nearest"),
    [
        (lambda boss: boss.create_queue("q", retry_limits=5), "retry_limit"),
        (lambda boss: boss.update_queue("graves", expires_in=5), "expire_in"),
        (lambda boss: boss.send("graves", None, priorty=5), "priority"),
        (lambda boss: boss.find_jobs("graves", states="failed"), "state"),
        (lambda boss: boss.schedule("graves", "* * * * *", priorities=5), "priority"),
    ],
)
async def test_every_call_answers_an_unknown_option_with_the_nearest(boss, call, nearest):
    with pytest.raises(TypeError, match=rf"unexpected option .*did you mean '{nearest}'\?.*The options are"):
        await call(boss)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("batchSize", "did you mean 'batch_size'?"),
        ("batch_sizes", "did you mean 'batch_size'?"),
        ("teamSize", "in trioboss it is concurrency"),
        ("pollingIntervalSeconds", "in trioboss it is not needed"),
        ("perJobResults", "in trioboss it is not needed: a batch handler may return a list of BatchResult"),
        ("transactional", "in trioboss it is job.transaction"),
    ],
)
async def test_work_answers_a_name_of_pg_boss_with_its_own(boss, name, hint):
    async def handle(job):
        pass

    with pytest.raises(TypeError, match=rf"^work: unexpected option '{name}': {re.escape(hint)}"):
        await boss.work("graves", handle, **{name: 3})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("retryLimit", "did you mean 'retry_limit'?"),
        ("expireInHours", "did you mean 'expire_in', in seconds or as a timedelta?"),
        ("retentionDays", "did you mean 'retention', in seconds or as a timedelta?"),
        ("deleteAfterDays", "did you mean 'delete_after', in seconds or as a timedelta?"),
    ],
)
async def test_queues_and_jobs_answer_a_name_of_pg_boss_with_their_own(boss, name, hint):
    for call, given in (("create_queue", boss.create_queue), ("send", boss.send)):
        with pytest.raises(
            TypeError, match=rf"^{call}: unexpected option '{name}': {re.escape(hint)}.*\bconn\b"
        ):
            await given("graves", **{name: 3})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("visibilityTimeoutMs", "expire_in"),
        ("maxAttempts", "retry_limit, which does not count the first attempt"),
        ("retryStrategy", "retry_backoff"),
        ("notify", "not needed"),
    ],
)
async def test_queues_answer_names_of_other_manuals_with_their_own(boss, name, hint):
    with pytest.raises(
        TypeError, match=f"^create_queue: unexpected option '{name}': in trioboss it is {hint}"
    ):
        await boss.create_queue("q", **{name: 3})


async def test_other_calls_about_jobs_answer_with_their_own_name(boss):
    with pytest.raises(trioboss.UsageError, match=r"jobs\[0\]: insert: .*'name': .*one queue a call"):
        await boss.insert("graves", [{"name": "graves"}])
    with pytest.raises(TypeError, match=r"^schedule: unexpected option 'timezone'.*\btz\b"):
        await boss.schedule("graves", "@daily", timezone="UTC")
    with pytest.raises(
        TypeError, match=r"^find_jobs: unexpected option 'key': in trioboss it is singleton_key"
    ):
        await boss.find_jobs("graves", key="k")


async def test_send_answers_the_unit_of_a_slot_with_seconds(boss):
    with pytest.raises(TypeError, match="did you mean 'singleton_seconds', in seconds or as a timedelta"):
        await boss.send("graves", singletonMinutes=5)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("poolSize", "did you mean 'pool_size'?"),
        ("pool_siz", "did you mean 'pool_size'?"),
        ("createSchema", "did you mean 'create_schema'?"),
        ("maintenanceIntervalDays", "did you mean 'maintenance_interval', in seconds or as a timedelta?"),
        ("connectionString", "in trioboss it is dsn"),
        ("superviseIntervalSeconds", "in trioboss it is maintenance_interval"),
        ("monitorIntervalSeconds", "in trioboss it is maintenance_interval"),
        ("monitorStateIntervalSeconds", "in trioboss it is monitor_interval"),
        ("useListenNotify", "in trioboss it is not needed"),
        ("instanceName", "in trioboss it is worker_name"),
        ("retryLimit", "it is for queues: give it in defaults={…}, as 'retry_limit'"),
        ("expireInHours", "it is for queues: give it in defaults={…}, as 'expire_in', in seconds or"),
    ],
)
async def test_open_boss_answers_a_name_of_pg_boss_with_its_own(dsn, name, hint):
    with pytest.raises(TypeError, match=rf"^open_boss: unexpected option '{name}': {re.escape(hint)}"):
        async with trioboss.open_boss(dsn, **{name: 1}):
            pass


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("reindexIntervalSeconds", "not there: `trioboss doctor`"),
        ("pollingIntervalSeconds", "not needed: a notification wakes workers"),
        ("clockMonitoringIntervalMinutes", "not needed: schedules go by the clock of the database"),
        ("flowIntervalSeconds", "not there: no job waits for other jobs"),
        ("backend", "not there: the database is Postgres"),
        ("clock", "not there: time is that of the database"),
    ],
)
def test_a_feature_that_only_pg_boss_has_is_named_and_no_option_that_looks_like_it(name, hint):
    with pytest.raises(TypeError, match=f"unexpected option '{name}': in trioboss it is {hint}"):
        trioboss.SyncBoss(**{name: 1})


async def test_limits_by_group_are_answered_with_the_policy_that_is_nearest_to_them(boss):
    async def handle(job):
        pass

    hint = "in trioboss it is not there: the policy singleton runs one job of a singleton_key at a time"
    with pytest.raises(TypeError, match=f"^work: unexpected option 'groupConcurrency': {hint}"):
        await boss.work("graves", handle, groupConcurrency=1)
    with pytest.raises(TypeError, match=f"^send: unexpected option 'group': {hint}"):
        await boss.send("graves", group={"id": "a"})


def test_a_sync_boss_answers_an_unknown_option_with_its_own_parameters(dsn):
    with pytest.raises(
        TypeError, match=r"^SyncBoss: unexpected option 'schma': did you mean 'schema'\?.*max_payload"
    ):
        trioboss.SyncBoss(dsn, schma="x")


# -- calls that have no options beside their parameters


def unknown_keywords(kind):
    """The calls of all public methods of a class with a keyword that none of them has; by name."""
    for name in sorted(dir(kind)):
        method = getattr(kind, name)
        if not name.startswith("_") and inspect.isfunction(method):
            required = [
                each
                for each in list(inspect.signature(method).parameters.values())[1:]
                if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
            ]
            yield name, ["q" for _ in required]


# The arguments that these methods check before their options.
VALID = {
    **dict.fromkeys(("work", "on_complete"), ("q", AsyncMock())),
    **dict.fromkeys(("send_after", "send_throttled", "send_debounced"), ("q", None, 60)),
    "update_job": ("q", UUID(int=1)),
}


async def call(method, arguments):
    """Call a method of any kind, with a keyword that it does not have."""
    result = method(*arguments, colour=1)
    if inspect.isawaitable(result):
        await result


@pytest.mark.parametrize("kind", [trioboss.Boss, trioboss.SyncBoss, trioboss.App])
async def test_every_method_answers_an_unknown_keyword_with_its_own_name(kind, boss, sync_boss, app):
    target = {trioboss.Boss: boss, trioboss.SyncBoss: sync_boss, trioboss.App: app}[kind]
    for name, arguments in unknown_keywords(kind):
        arguments = VALID.get(name, arguments)
        with pytest.raises(TypeError, match=rf"^{name}: unexpected option 'colour'.*(The|no) options"):
            await call(getattr(target, name), arguments)


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (lambda: trioboss.App(lifespam=None), "App: unexpected option 'lifespam': did you mean 'lifespan'?"),
        (lambda: trioboss.NewJob(1, prio=2), "NewJob: unexpected option 'prio': did you mean 'priority'?"),
        (
            lambda: trioboss.NewJob(1, retryLimit=2),
            "NewJob: unexpected option 'retryLimit': did you mean 'retry_",
        ),
        (
            lambda: trioboss.BatchResult(UUID(int=1), outputs=2),
            "BatchResult: unexpected option 'outputs': did you mean 'output'?",
        ),
        (
            lambda: trioboss.dashboard.make_app("", actdsn=""),
            "make_app: unexpected option 'actdsn': did you mean 'act_dsn'?",
        ),
        (
            lambda: trioboss.preview_schedule("@daily", timezone="UTC"),
            "preview_schedule: unexpected option 'timezone': The options are after, count, cron, tz",
        ),
    ],
)
def test_functions_and_classes_answer_an_unknown_keyword_with_the_nearest(call, answer):
    with pytest.raises(TypeError, match="^" + re.escape(answer)):
        call()


async def test_the_methods_of_a_job_answer_an_unknown_keyword_with_their_own(run_job):
    async def handle(job):
        job.retry(delai=5)

    job, _ = await run_job(handle)

    assert job.output["message"] == (
        "retry: unexpected option 'delai': did you mean 'delay'? The options are delay, reason"
    )


def test_the_check_leaves_methods_async_or_plain_and_their_signatures():
    assert inspect.iscoroutinefunction(trioboss.Boss.fetch)
    assert not inspect.iscoroutinefunction(trioboss.SyncBoss.fetch)
    assert list(inspect.signature(trioboss.NewJob).parameters)[:2] == ["data", "id"]
