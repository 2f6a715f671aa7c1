"""The public interface: its names, their descriptions, and that both are as promised."""

import inspect
import pickle
import re
import subprocess
import sys

import attrs
import pytest
from public_contract import ATTRIBUTES, OPEN_BOSS, PUBLIC, QUEUE_DEFAULTS, SIGNATURES, WRITING

import trioboss
from docs.pages.api import find_aliases
from trioboss.model.job import NewJob, SendOptions
from trioboss.model.queue import QueueOptions, QueueSettings


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
