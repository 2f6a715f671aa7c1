"""The public interface: its names, their descriptions, and that both are as promised."""

import inspect
import pickle
import re
import subprocess
import sys

import attrs
import pytest

import trioboss
from docs.pages.api import find_aliases
from trioboss.model.job import NewJob, SendOptions
from trioboss.model.queue import QueueOptions, QueueSettings

PUBLIC = [
    "ActorRestarted",
    "App",
    "AsyncioJob",
    "BatchFailed",
    "BatchResult",
    "Boss",
    "BossClosed",
    "BossStatistics",
    "CallNext",
    "CallerConnection",
    "CancelReason",
    "Connection",
    "ConnectionOptions",
    "DataMismatch",
    "DatabaseUnavailable",
    "DeadLetterJob",
    "Decoder",
    "Duration",
    "ErrorEvent",
    "Event",
    "Explanation",
    "FetchOptions",
    "FindOptions",
    "Handler",
    "Job",
    "JobCancelled",
    "JobCompleted",
    "JobCreated",
    "JobFailed",
    "JobLogFilter",
    "JobNotFound",
    "JobReleased",
    "JobStarted",
    "JobState",
    "JobStuck",
    "JobUpdate",
    "JobsRecovered",
    "Json",
    "JsonInput",
    "KeptWarning",
    "LateError",
    "LeaderChanged",
    "LeaseExtended",
    "LeaseLost",
    "LeaseLostEvent",
    "Lifespan",
    "ListenerDown",
    "ListenerUp",
    "LoopBlocked",
    "Middleware",
    "MonitorStates",
    "NewJob",
    "NoPostgres",
    "OutcomeUnknown",
    "PayloadError",
    "Policy",
    "PolicyName",
    "PoolTimeout",
    "Queue",
    "QueueBusy",
    "QueueChanged",
    "QueueExists",
    "QueueInUse",
    "QueueOptions",
    "QueueSample",
    "QueueStats",
    "QueueWarning",
    "Reason",
    "Redriven",
    "RetryJob",
    "RunningJob",
    "Schedule",
    "ScheduleOptions",
    "SchemaOutOfDate",
    "SendOptions",
    "ServerDown",
    "Settled",
    "Start",
    "StatementFailed",
    "Stopped",
    "SupervisorGaveUp",
    "SyncBoss",
    "Task",
    "ThreadJob",
    "TickFired",
    "TriobossError",
    "UnknownQueue",
    "UpdateOptions",
    "UsageError",
    "Wip",
    "WorkOptions",
    "Worker",
    "WorkerOptions",
    "WorkerStatistics",
    "WorkerWip",
    "__version__",
    "construction_plans",
    "migration_plans",
    "open_boss",
    "preview_schedule",
    "rollback_plans",
]

# The contract: each method with the arguments that users name. Arguments after them are ours to choose.
SIGNATURES = {
    # queues
    "create_queue": "name options",
    "update_queue": "name options",
    "delete_queue": "name",
    "get_queue": "name",
    "get_queues": "names",
    "get_queue_stats": "name",
    "get_all_queue_stats": "",
    "get_queue_stats_history": "name since until bucket",
    "get_warnings": "queue since limit",
    "get_queue_size": "name before",
    "get_blocked_keys": "name",
    "pause": "name",
    "resume_queue": "name",
    # sending
    "send": "queue data on_duplicate options",
    "send_after": "queue data after options",
    "send_throttled": "queue data seconds key options",
    "send_debounced": "queue data seconds key options",
    "send_once": "queue data key options",
    "send_singleton": "queue data options",
    "insert": "queue jobs return_ids",
    "publish": "event data options",
    "subscribe": "event queue",
    "unsubscribe": "event queue",
    # fetching and settling manually
    "fetch": "queue batch_size priority ignore_start_after min_priority max_priority",
    "complete": "queue job_or_id output include_queued",
    "fail": "queue job_or_id error",
    "touch": "queue job_or_id",
    "cancel": "queue id_or_ids",
    "resume": "queue id_or_ids",
    "retry": "queue id_or_ids",
    "delete_job": "queue id_or_ids",
    "delete_queued_jobs": "queue",
    "delete_stored_jobs": "queue",
    "delete_all_jobs": "queue",
    "delete_all_queued_jobs": "",
    "update_job": "queue id key match changes",
    "redrive": "dead_letter_queue to source limit dry_run",
    "clear_storage": "",
    "get_job_by_id": "queue id",
    "find_jobs": "queue filters",
    "wait_for": "queue id timeout",
    "fetch_completed": "queue",
    "why": "queue id",
    # working
    "work": "queue handler data batch_size thread asyncio",
    "off_work": "queue_or_worker",
    "notify_worker": "worker",
    "on_complete": "queue handler",
    "off_complete": "queue",
    "follow": "queue id",
    "use": "middleware",
    "stop": "",
    "maintain": "queue",
    # schedules, events, admin
    "schedule": "queue cron data tz key missed send_options",
    "unschedule": "queue key",
    "get_schedules": "queue",
    "events": "kinds",
    "is_installed": "",
    "schema_version": "",
}
WRITING = [
    *("create_queue", "update_queue", "delete_queue", "pause", "resume_queue"),
    *(
        "send",
        "send_after",
        "send_throttled",
        "send_debounced",
        "send_once",
        "send_singleton",
        "insert",
        "publish",
    ),
    *(
        "subscribe",
        "unsubscribe",
        "fetch",
        "complete",
        "fail",
        "touch",
        "cancel",
        "resume",
        "retry",
        "delete_job",
    ),
    *("delete_queued_jobs", "delete_stored_jobs", "delete_all_jobs", "clear_storage", "fetch_completed"),
    *("delete_all_queued_jobs", "update_job", "redrive"),
    *("schedule", "unschedule"),
]
OPEN_BOSS = "dsn schema pool_size migrate supervise schedule worker_name grace app"
QUEUE_DEFAULTS = {
    "policy": "standard",
    "partition": False,
    "dead_letter": None,
    "warning_queue_size": None,
    "retry_limit": 2,
    "retry_delay": 0,
    "retry_backoff": False,
    "retry_delay_max": None,
    "retry_window": None,
    "expire_in": 900,
    "heartbeat": None,
    "auto_heartbeat": True,
    "max_lease_extensions": 3,
    "commit_order": True,
    "retention": 14 * 86400,
    "delete_after": 7 * 86400,
    "keep_completed": True,
}
# Attributes of the values, and of the job that a handler gets.
ATTRIBUTES = {
    "Job": "id queue data state priority attempt retry_count retry_limit singleton_key created_on start_after "
    "started_on completed_on expire_in heartbeat output dead_letter source_queue source_id policy singleton_on "
    "delete_after retry_jitter retry_window retention",
    "QueueStats": "deferred queued ready active failed completed dead_letter retries oldest_age paused "
    "pending inflight",
    "Settled": "requested affected ids",
    "JobUpdate": "state progress output",
    "RunningJob": "id queue data attempt boss context cancelled extend touch progress complete retry dead_letter "
    "transaction",
    "ThreadJob": "id queue data attempt boss context cancelled extend touch progress complete retry dead_letter",
    "AsyncioJob": "id queue data attempt boss context cancelled extend touch progress complete retry dead_letter",
    "App": "worker schedule use",
    "Task": "send",
}


def parameters(function):
    return inspect.signature(function).parameters


def test_the_public_names_are_these():
    assert trioboss.__all__ == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there_and_described(name):
    thing = getattr(trioboss, name)

    # A name of a type has no docstring: the reference has the text below it in its module.
    assert name == "__version__" or name in find_aliases() or (inspect.getdoc(thing) and thing.__doc__)


@pytest.mark.parametrize("owner", [trioboss.Boss, trioboss.SyncBoss, trioboss.App])
def test_every_public_method_is_described(owner):
    undescribed = [
        name
        for name, method in inspect.getmembers(
            owner, lambda x: inspect.isfunction(x) or isinstance(x, property)
        )
        if not name.startswith("_") and not inspect.getdoc(method)
    ]

    assert undescribed == []


@pytest.mark.parametrize(("method", "promised"), SIGNATURES.items())
def test_a_method_of_boss_takes_what_was_promised(method, promised):
    taken = [name for name in parameters(getattr(trioboss.Boss, method)) if name not in ("self", "conn")]

    assert [name for name in taken if name in promised.split()] == promised.split()


@pytest.mark.parametrize("method", WRITING)
def test_a_method_that_writes_takes_the_callers_connection(method):
    assert parameters(getattr(trioboss.Boss, method))["conn"].kind is inspect.Parameter.KEYWORD_ONLY


def test_open_boss_takes_what_was_promised():
    taken = parameters(trioboss.open_boss)

    assert [name for name in taken if name in OPEN_BOSS.split()] == OPEN_BOSS.split()
    assert {name: taken[name].default for name in ("dsn", "schema", "pool_size", "migrate", "grace")} == {
        "dsn": None,
        "schema": "trioboss",
        "pool_size": 10,
        "migrate": True,
        "grace": 30.0,
    }


def test_the_defaults_are_those_of_the_contract():
    fetch = parameters(trioboss.Boss.fetch)

    assert (fetch["batch_size"].default, fetch["priority"].default) == (1, True)
    assert parameters(trioboss.Boss.get_queue_size)["before"].default == "active"
    assert parameters(trioboss.Boss.schedule)["tz"].default == "UTC"
    assert parameters(trioboss.Boss.schedule)["missed"].default == "skip"
    assert parameters(trioboss.Boss.insert)["return_ids"].default is False


def test_the_options_of_queues_have_the_defaults_of_the_contract():
    settings = attrs.asdict(QueueSettings())

    assert {name: settings[name] for name in QUEUE_DEFAULTS} == QUEUE_DEFAULTS
    assert QueueSettings(retry_backoff=True).retry_jitter == 0.5


@pytest.mark.parametrize(("name", "promised"), ATTRIBUTES.items())
def test_a_value_has_the_attributes_of_the_contract(name, promised):
    owner = getattr(trioboss, name)
    annotated = {each for kind in owner.__mro__ for each in inspect.get_annotations(kind)}

    assert [each for each in promised.split() if not hasattr(owner, each) and each not in annotated] == []


def test_the_functions_of_the_edges_take_what_was_promised():
    dashboard = pytest.importorskip("trioboss.dashboard")
    otel = pytest.importorskip("trioboss.otel")

    assert list(parameters(dashboard.make_app))[:5] == ["dsn", "act_dsn", "prefix", "authorize", "redact"]
    assert list(parameters(otel.instrument))[:2] == ["boss_or_app", "parent"]
    assert list(parameters(trioboss.App))[:2] == ["lifespan", "middleware"]


def test_jobs_inherit_the_options_of_their_queue_that_are_about_jobs():
    about_queues = {"policy", "partition", "warning_queue_size", "commit_order", "keep_completed"}
    about_jobs = {
        "id",
        "priority",
        "start_after",
        "singleton_key",
        "singleton_seconds",
        "singleton_next_slot",
        "trace",
    }

    assert set(QueueOptions.__annotations__) - about_queues == set(SendOptions.__annotations__) - about_jobs
    assert {field.name for field in attrs.fields(NewJob)} == set(SendOptions.__annotations__) | {"data"}


@pytest.mark.parametrize("options", [QueueOptions, SendOptions, trioboss.WorkOptions])
def test_help_describes_every_option(options):
    text = inspect.getdoc(options)

    assert [name for name in options.__annotations__ if f"``{name}``" not in text] == []


def test_help_names_the_defaults_of_queues():
    described = dict(re.findall(r"- ``(\w+)`` \(([\w.]+)", inspect.getdoc(QueueOptions)))
    settings = attrs.asdict(QueueSettings(retry_jitter=0.5))
    for days in ("retention", "delete_after"):
        settings[days] /= 86400

    assert described == {
        name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in settings.items()
    }


def test_a_name_that_is_not_public_is_missing_and_named():
    with pytest.raises(AttributeError, match="'trioboss' has no attribute 'open_bus'"):
        trioboss.open_bus  # noqa: B018


def test_its_parts_can_be_used_without_importing_each():
    program = (
        "import trioboss; print(trioboss.events.Wip, trioboss.errors.UsageError, 'Boss' in dir(trioboss))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.endswith(" True\n")


def test_plans_are_functions_of_schema_and_version():
    assert list(parameters(trioboss.construction_plans)) == ["schema"]
    assert list(parameters(trioboss.migration_plans)) == ["schema", "version"]
    assert list(parameters(trioboss.rollback_plans)) == ["schema", "version", "to"]


async def test_a_boss_knows_its_dsn_and_schema_and_shows_no_password(dsn):
    async with trioboss.open_boss(dsn + " password=s3cret", migrate=False) as boss:
        assert "s3cret" in boss.dsn
        assert "s3cret" not in repr(boss)
        assert (boss.schema, repr(boss).startswith("<Boss ")) == ("trioboss", True)


def test_values_can_be_sent_to_another_process():
    for value in (NewJob({"a": 1}, priority=3), trioboss.Settled(1, 0, ()), trioboss.Policy.SHORT):
        assert pickle.loads(pickle.dumps(value)) == value


@pytest.mark.parametrize(
    ("use", "heavy"),
    [
        ("import trioboss", ["trio", "psycopg", "croniter"]),
        ("from trioboss import *", ["pyspark", "pytest", "hypothesis", "trio_asyncio"]),
    ],
)
def test_importing_it_brings_nothing_that_is_not_needed(use, heavy):
    program = f"import sys; {use}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"
