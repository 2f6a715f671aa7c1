"""The documents for contributors name files, tests and versions that exist."""

import re
import tomllib
from pathlib import Path

import pytest

import trioboss
from docs.pages.links import LINK, find_anchors, leads_nowhere
from trioboss.postgres.embedded.binaries import OLDEST_MAJOR

ROOT = Path(__file__).parent.parent
SQL = Path(trioboss.__file__).parent / "sql"
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
DOCUMENTS = [
    *(
        ROOT / name
        for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")
    ),
    *(
        ROOT / "tests" / "README.md",
        ROOT / "docs" / "glossary.md",
        ROOT / "docs" / "decisions" / "README.md",
    ),
    *DECISIONS,
    *(ROOT / ".github").glob("*.md"),
]

IN_QUOTES = re.compile(r"`([^`\s]+)`")
FILE = re.compile(
    r"[\w./-]+\.(?:py|sql|md|toml|yml|cfg)(?:::\w+)?|(?:trioboss|tests|docs|benchmarks)/[\w./-]+"
)


def named_files(text: str) -> set[str]:
    """The files, folders and tests that a document names."""
    return {name for name in IN_QUOTES.findall(text) if FILE.fullmatch(name)}


def is_there(name: str, beside: Path = ROOT) -> bool:
    path, _, test = name.partition("::")
    folders = [
        ROOT,
        beside,
        *((SQL / part for part in ("statements", "migrations")) if path.endswith(".sql") else ()),
    ]
    files = [folder / path for folder in folders if (folder / path).exists()]
    return bool(files) and (not test or re.search(rf"def {test}\(", files[0].read_text("utf-8")) is not None)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_document_names_what_exists(document):
    named = {name for name in named_files(document.read_text("utf-8")) if "NNNN" not in name}

    assert {name for name in named if not is_there(name, document.parent)} == set()


@pytest.mark.parametrize(
    "name",
    [
        "trioboss/nothing.py",
        "tests/nowhere",
        "no_such_statement.sql",
        "tests/test_documents.py::test_nobody_wrote",
    ],
)
def test_a_name_that_does_not_exist_is_noticed(name):
    assert named_files(f"see `{name}`, where") == {name}
    assert not is_there(name)


# -- links

_OTHERS = {".venv", "build", "docs", "node_modules"}
# Pages of the site are checked when it is built, except for what they say of headings outside of docs/: see conf.py.
LINKING = [
    *sorted(path for path in ROOT.rglob("*.md") if not _OTHERS & set(path.relative_to(ROOT).parts)),
    *DECISIONS,
]


def dead_links(text: str, document: Path) -> list[str]:
    """The links of a document to files that do not exist, or to headings that they do not have."""
    return [
        f"{path}#{anchor}"
        for _, path, anchor in LINK.findall(text)
        if leads_nowhere(document.parent / path if path else document, anchor)
    ]


@pytest.mark.parametrize("document", LINKING, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_links_of_a_document_lead_somewhere(document):
    assert dead_links(document.read_text("utf-8"), document) == []


@pytest.mark.parametrize(
    "link", ["nothing.md", "docs/why.md#nothing", "CONTRIBUTING.md#nothing", "#nothing", "docs/nowhere"]
)
def test_a_dead_link_is_noticed(link):
    assert dead_links(f"see [this]({link}), or", ROOT / "README.md")


@pytest.mark.parametrize(
    "link",
    ["docs/why.md", "docs/guides/index.md#guides", "#two-commands", "docs", "https://nowhere.example/#x"],
)
def test_other_links_are_fine(link):
    assert not dead_links(f"see [this]({link}), or", ROOT / "README.md")


def test_anchors_are_those_that_github_makes():
    text = "# A `b_c`, d!\n## Same\n## Same\n```sh\n# no heading\n```\n(set-here)=\n### [Link](x.md) … end\n"

    assert find_anchors(text) == {"a-b_c-d", "same", "same-1", "set-here", "link--end"}


def test_links_to_other_sites_are_fetched_once_a_week():
    job = WORKFLOW.partition("\n  links:\n")[2].partition("\n\n")[0]

    assert "if: github.event_name == 'schedule'" in job
    assert "sphinx -b linkcheck" in job


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) < 120


def test_the_readme_builds_the_site_as_ci_does():
    build = re.search(r"\S+/python -m sphinx .*", (ROOT / "README.md").read_text("utf-8"))[0]

    assert build in (ROOT / ".ci" / "run").read_text("utf-8")


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_is_a_page_of_four_parts(decision):
    text = decision.read_text("utf-8")
    index = (decision.parent / "README.md").read_text("utf-8")

    assert re.findall("^## (.*)", text, re.MULTILINE) == ["Context", "Measured", "Decision", "Consequences"]
    assert len(text.splitlines()) <= 60
    assert f"({decision.name})" in index


QUESTIONS = re.findall(
    r"^\d+\. \*\*.*?(?=^\d+\. \*\*|\Z)",
    (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Ten questions")[2],
    re.MULTILINE | re.DOTALL,
)


def test_there_are_ten_questions():
    assert len(QUESTIONS) == 10


@pytest.mark.parametrize("answer", QUESTIONS, ids=lambda answer: answer.partition(".")[0])
def test_an_answer_names_at_most_five_files(answer):
    assert len(set(re.findall(r"[\w/-]+\.(?:py|sql|md)\b", answer))) <= 5


MUTANTS = tomllib.loads((ROOT / "tests" / "mutants" / "mutants.toml").read_text("utf-8"))
LONG_NAME = re.compile(r"`([a-z_]+(?:-[a-z_]+){2,})`")


def test_the_mutants_that_decisions_name_exist():
    named = {name for decision in DECISIONS for name in LONG_NAME.findall(decision.read_text("utf-8"))}

    assert named
    assert named <= set(MUTANTS)


def test_commands_are_added_in_the_file_that_the_guide_names():
    """A call of the function `add`, not of a method of that name."""
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    adding = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "trioboss" / "cli").glob("*.py")
        if re.search(r"^( +parser = | +)add\(", path.read_text("utf-8"), re.MULTILINE)
    }

    assert adding == set(re.findall(r"an `add\(…\)` in\s+`([^`]+)`", guide))


# -- the versions that we support are the same everywhere

WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
CI_RUN = (ROOT / ".ci" / "run").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def in_workflow(name: str) -> list[str]:
    return re.findall(r"[\d.]+", re.search(rf"^ +{name}: \[(.*)\]$", WORKFLOW, re.MULTILINE)[1])


def in_ci_run(name: str) -> list[str]:
    return re.search(rf'^{name}="(.*)"$', CI_RUN, re.MULTILINE)[1].split()


def test_ci_tests_the_pythons_that_we_support():
    pythons = in_workflow("python")
    declared = [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", text)]

    assert pythons == in_ci_run("PYTHONS")
    assert set(declared) <= set(pythons)
    assert PROJECT["requires-python"] == f">={pythons[0]}"


def test_ci_tests_the_postgres_versions_that_we_support():
    versions = in_workflow("postgres")

    assert versions == in_ci_run("POSTGRES")
    assert int(versions[0]) == OLDEST_MAJOR


def test_the_changelog_has_a_section_for_what_comes_next():
    sections = re.findall(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    released = trioboss.__version__.partition(".dev")[0]

    assert sections[0] == ("Unreleased" if ".dev" in trioboss.__version__ else released)
    assert ".dev" not in trioboss.__version__ or released not in sections
