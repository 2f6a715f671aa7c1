"""The reference has every public name, option, command, setting and metric, and what it says of options is true."""

import inspect
import re
from pathlib import Path

import attrs
import pytest

import trioboss
from docs.pages import PAGES
from docs.pages.api import SUBJECTS, find_types, methods_of, resolve_name
from docs.pages.commands import describe_command, find_commands
from docs.pages.docstrings import attribute_texts
from docs.pages.jobs import describe_running_job, job_fields
from docs.pages.llms import describe_site, find_pages
from docs.pages.options import queue_options, send_options, work_options
from trioboss.cli.database_metrics import DATABASE_METRICS
from trioboss.cli.health import _COUNTERS
from trioboss.cli.parser import PAGE_OF
from trioboss.errors import UsageError
from trioboss.model.cron import _MOST_TICKS
from trioboss.model.job import NewJob
from trioboss.model.queue import QueueSettings
from trioboss.model.states import JobState, Readiness

ROOT = Path(__file__).parent.parent.parent
REFERENCE = ROOT / "docs" / "reference"
GENERATED = "\n".join(describe() for describe in PAGES.values())
WRITTEN = "\n".join(page.read_text("utf-8") for page in sorted(REFERENCE.glob("*.md")))
DESCRIBED = set(
    re.findall(
        r"(?:auto\w+|py:\w+):: trioboss\.(?:\w+\.)*?(\w+)(?:\(.*\))?$", WRITTEN + GENERATED, re.MULTILINE
    )
)


def test_every_public_name_is_in_the_reference():
    assert [name for name in trioboss.__all__ if name not in DESCRIBED] == []


@pytest.mark.parametrize("module", ["dashboard", "otel", "testing", "pipeline"])
def test_the_names_of_other_modules_are_in_the_reference(module):
    page = (REFERENCE / "modules.md").read_text("utf-8")
    names = pytest.importorskip(f"trioboss.{module}", exc_type=ImportError).__all__
    described = re.findall(rf"auto\w+:: trioboss\.{module}\.(\w+)(?:\(\))?$", page, re.MULTILINE)

    assert sorted(set(names) - set(described)) == []


@pytest.mark.parametrize("owner", [trioboss.Boss, trioboss.SyncBoss])
def test_every_method_is_in_the_reference(owner):
    listed = re.findall(rf":: trioboss\.{owner.__name__}\.(\w+)", GENERATED)

    assert sorted(listed) == sorted(methods_of(owner))


def test_every_method_has_a_subject():
    subjects = {name for names in SUBJECTS.values() for name in names.split()}

    assert {*methods_of(trioboss.Boss), *methods_of(trioboss.SyncBoss)} - subjects == set()


def test_every_field_of_a_job_is_described():
    assert [name for name, (_, text) in job_fields().items() if not text] == []


@pytest.mark.parametrize("job", [trioboss.RunningJob, trioboss.ThreadJob, trioboss.AsyncioJob])
def test_everything_that_a_handler_can_do_with_its_job_is_described(job):
    public = {name for name in methods_of(job) if name != "settled_manually"}
    described = set(
        re.findall(r"`(\w+)`", describe_running_job())
        + re.findall(r":: (\w+)$", describe_running_job(), re.M)
    )

    assert public - described - {"job"} == set()


# -- links in docstrings; a build of the site finds those that lead nowhere


@pytest.mark.parametrize(
    ("written", "full"),
    [
        ("boss.send", "trioboss.Boss.send"),
        ("send", "trioboss.Boss.send"),
        ("job.extend", "trioboss.RunningJob.extend"),
        ("job.data", "trioboss.RunningJob.data"),
        ("app.worker", "trioboss.App.worker"),
        ("Job.progress", "trioboss.Job.progress"),
        ("RetryJob", "trioboss.RetryJob"),
    ],
)
def test_a_name_in_a_docstring_is_a_link_as_programs_write_it(written, full):
    assert resolve_name(written) == full


@pytest.mark.parametrize("written", ["boss.fly", "fly", "job.wings", "dsn", "trioboss worker", "settings"])
def test_a_name_that_does_not_exist_is_no_link(written):
    assert resolve_name(written) is None


def test_the_parts_of_statistics_are_described():
    described = {kind.__name__ for kind in find_types()} | set(trioboss.__all__)

    assert {"BossStatistics", "WorkerStatistics", "DispatcherStatistics", "PoolStatistics"} <= described


# -- options

QUEUE, SEND, WORK = queue_options(), send_options(), work_options()


@pytest.mark.parametrize("option", [*QUEUE, *SEND, *WORK], ids=lambda option: option.name)
def test_an_option_has_a_meaning_a_type_a_default_a_unit_limits_and_an_example(option):
    assert all(attrs.astuple(option)), option
    assert option.meaning.endswith(".")
    assert f"{option.name}=" in option.example


def evaluate(example: str) -> dict[str, object]:
    """The keyword arguments of an example."""
    names = ("Email", "log_jobs", "open_clients")
    return eval(f"dict({example})", {name: name for name in names})


def test_every_option_is_described():
    given = inspect.signature(trioboss.Boss.work).parameters
    kinds = {name for name, parameter in given.items() if parameter.kind is parameter.KEYWORD_ONLY}

    assert {option.name for option in QUEUE} == {field.name for field in attrs.fields(QueueSettings)}
    given_to_send = inspect.signature(trioboss.Boss.send).parameters.values()
    of_the_call = {each.name for each in given_to_send if each.kind is each.KEYWORD_ONLY}
    of_a_job = {field.name for field in attrs.fields(NewJob)} - {"data"}
    assert {option.name for option in SEND} == of_a_job | of_the_call
    assert {option.name for option in WORK} == kinds | set(trioboss.WorkOptions.__annotations__)


@pytest.mark.parametrize("option", QUEUE, ids=lambda option: option.name)
def test_the_example_of_a_queue_option_is_accepted_and_changes_it(option):
    settings = QueueSettings(**evaluate(option.example))

    assert getattr(settings, option.name) != getattr(QueueSettings(), option.name)


JOB = [option for option in SEND if option.name in attrs.fields_dict(NewJob)]


@pytest.mark.parametrize("option", [*QUEUE, *SEND, *WORK], ids=lambda option: option.name)
def test_an_option_that_is_a_number_has_a_unit(option):
    is_number = re.search(r"\b(int|float|Duration|Start)\b", option.type)

    assert (option.unit != "none") == bool(is_number and "priority" not in option.name)


@pytest.mark.parametrize("option", JOB, ids=lambda option: option.name)
def test_the_example_of_a_send_option_is_accepted(option):
    assert getattr(NewJob(None, **evaluate(option.example)), option.name) is not None


def bounds(limits: str) -> list[int]:
    """The numbers that are just outside of whole numbers from one to another."""
    found = re.search(r"a whole number from (-?[\d,]+) to ([\d,]+)", limits)
    low, high = (int(number.replace(",", "")) for number in found.groups()) if found else (0, 0)
    return [low - 1, high + 1] if found else []


@pytest.mark.parametrize(
    ("make", "option"),
    [
        *((QueueSettings, option) for option in QUEUE if bounds(option.limits)),
        *((NewJob, option) for option in JOB if bounds(option.limits)),
    ],
    ids=str,
)
def test_the_limits_of_a_number_are_those_that_are_checked(make, option):
    below, above = bounds(option.limits)

    make(**{option.name: below + 1})
    make(**{option.name: above - 1})
    for value in (below, above):
        with pytest.raises(UsageError):
            make(**{option.name: value})


async def test_the_limits_of_a_worker_are_those_that_are_checked(boss):
    numbers = {option.name: bounds(option.limits) for option in WORK if bounds(option.limits)}

    assert {"concurrency", "prefetch", "batch_size", "min_priority", "max_priority"} <= set(numbers)
    for option, outside in numbers.items():
        for value in outside:
            with pytest.raises(UsageError, match=f"^{option}: "):
                await boss.work("queue", print, thread=True, **{option: value})


MISSED = {
    "the tutorial": (ROOT / "docs" / "tutorial" / "cron.md").read_text("utf-8"),
    "the method": inspect.getdoc(trioboss.Boss.schedule),
    "the options": attribute_texts(trioboss.ScheduleOptions)["missed"],
    "the command": find_commands()["schedule"].format_help(),
}


@pytest.mark.parametrize("text", MISSED.values(), ids=MISSED)
def test_the_limit_of_missed_ticks_is_stated(text):
    assert f"at most the last {_MOST_TICKS:,}" in " ".join(text.split())


# -- commands, settings, metrics


@pytest.mark.parametrize(("name", "parser"), find_commands().items(), ids=lambda value: str(value)[:20])
def test_every_argument_of_a_command_is_described(name, parser):
    assert [action.dest for action in parser._actions if not action.help] == []


def test_a_value_that_may_be_left_out_is_in_brackets():
    demo = "\n".join(describe_command("demo", find_commands()["demo"]))

    assert "`--dashboard [[HOST:]PORT]`" in demo
    assert "`--seconds " in demo


@pytest.mark.parametrize(("name", "parser"), find_commands().items(), ids=lambda value: str(value)[:20])
def test_the_help_of_a_command_names_a_page_that_exists(name, parser):
    assert parser.epilog.endswith(f"/docs/{PAGE_OF[name]}")
    assert (ROOT / "docs" / PAGE_OF[name]).exists()


def test_every_argument_of_open_boss_is_among_the_settings():
    page = (REFERENCE / "settings.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", page.partition("## Environment")[0], re.MULTILINE))
    taken = inspect.signature(trioboss.open_boss).parameters
    parameters = {
        name: parameter for name, parameter in taken.items() if parameter.kind is not parameter.VAR_KEYWORD
    }

    assert list(rows) == list(parameters)
    for name, parameter in parameters.items():
        if name not in ("worker_name", "max_payload"):
            assert rows[name].strip() == f"`{parameter.default!r}`".replace("'", '"')
    assert rows["max_payload"].strip() == f"{parameters['max_payload'].default:,}"


def test_every_variable_of_the_environment_is_among_the_settings():
    page = (REFERENCE / "settings.md").read_text("utf-8")
    sources = "\n".join(path.read_text("utf-8") for path in (ROOT / "trioboss").rglob("*.py"))

    assert {name for name in re.findall(r"\bTRIOBOSS_[A-Z_]+", sources) if f"`{name}`" not in page} == set()


def test_every_metric_is_in_the_reference():
    page = (REFERENCE / "metrics.md").read_text("utf-8")
    health = (ROOT / "trioboss" / "cli" / "health.py").read_text("utf-8")
    names = {f"trioboss_{name}_total" for name in _COUNTERS} | set(DATABASE_METRICS)
    names |= set(re.findall(r'"(trioboss_[a-z_]+)"', health))

    assert {name for name in names if f"`{name}`" not in page} == set()


def test_every_kind_of_warning_is_in_the_reference():
    page = (REFERENCE / "events.md").read_text("utf-8")
    programs = "\n".join(path.read_text("utf-8") for path in (ROOT / "trioboss").rglob("*.py"))
    statements = "\n".join(path.read_text("utf-8") for path in (ROOT / "trioboss" / "sql").rglob("*.sql"))
    kinds = set(re.findall(r'QueueWarning\([^,]+, "(\w+)"', programs))
    kinds |= set(re.findall(r"SELECT [\w.]+, '(\w+)'(?: AS warning)?, (?:NULL|s\.pid)", statements))

    assert len(kinds) > 6
    assert {kind for kind in kinds if f"`{kind}`" not in page} == set()


def rows_below(heading: str) -> list[str]:
    """The names in the first column of a table of the page about states."""
    table = (REFERENCE / "states.md").read_text("utf-8").partition(f"| {heading} |")[2].partition("\n\n")[0]
    return re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


@pytest.mark.parametrize(
    ("heading", "values"), [("state", JobState), ("readiness", Readiness), ("reason", trioboss.Reason)]
)
def test_states_are_listed_in_their_order(heading, values):
    assert rows_below(heading) == [value.value for value in values]


def test_every_error_has_causes_and_a_remedy():
    page = (REFERENCE / "errors.md").read_text("utf-8")
    sections = dict(
        re.findall(r"autoexception:: trioboss\.(\w+)\(\)\n```\n(.*?)(?=\n##|\Z)", page, re.DOTALL)
    )

    assert set(sections) == set(trioboss.errors.__all__)
    for part in ("**Causes.**", "**Remedy.**"):
        assert [name for name, text in sections.items() if part not in text] == ["TriobossError"]


def test_llms_txt_has_every_page_and_no_others():
    docs = ROOT / "docs"
    linked = re.findall(r"\]\(([^)]+)\.html\)", describe_site(docs))

    assert sorted(f"{name}.md" for name in linked) == find_pages(docs)


def test_llms_txt_has_the_order_and_the_sections_of_the_site():
    text = describe_site(ROOT / "docs")
    chapters = re.findall(r"\]\(tutorial/([\w-]+)\.html\)", text)

    assert chapters[:3] == ["index", "first-job", "failure-and-retry"]
    assert chapters[-1] == "shop"
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Learn", "Look up", "Understand"]


def test_llms_txt_has_a_sentence_for_every_page():
    lines = re.findall(r"^- .*$", describe_site(ROOT / "docs"), re.MULTILINE)

    assert [line for line in lines if not re.search(r"\.html\): [\w`].{15}", line)] == []


def test_a_page_that_no_table_of_contents_has_is_an_error(tmp_path):
    (tmp_path / "index.md").write_text("# A\n\nB.\n\n```{toctree}\n:caption: C\n\nd\n```\n")
    (tmp_path / "d.md").write_text("# D\n\nE.\n")
    assert "## C\n\n- [D](d.html): E." in describe_site(tmp_path)

    (tmp_path / "lost.md").write_text("# F\n")
    with pytest.raises(LookupError, match=r"lost\.md"):
        describe_site(tmp_path)
