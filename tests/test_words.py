"""Our terms are in the code as the glossary says, and no name uses a word that was given up for a term of the field."""

import ast
import functools
import re
from collections.abc import Iterator, Set
from pathlib import Path

import pytest

import trioboss

ROOT = Path(trioboss.__file__).parent
REPOSITORY = ROOT.parent
GLOSSARY = (REPOSITORY / "docs" / "glossary.md").read_text("utf-8")

# Words that were given up, and what to write instead.
INSTEAD = [
    ("say says said word words", "notify, notification"),
    ("hear hears heard ears deaf", "receive, listening connection, polling mode"),
    ("look looks looked looking", "poll, reload, find_next_due, claim again"),
    ("turn turns", "key lock, connection permit, read permit, iteration"),
    ("sleeper sleepers asleep mark marks", "idle dispatcher, idle, idle marker"),
    ("door doors", "api"),
    ("verb verbs conversation conversations dialogue converse", "operation, protocol"),
    ("drive drives driving driver", "execute, executor, trio connection"),
    ("flush flushes step steps sequel", "batch, statement, follow-up"),
    ("aside asides together delivery", "on own connection, in parallel, pipeline"),
    ("exchange exchanges exchanged exchanging trade trades", "settle and claim"),
    ("tray trays acknowledger", "completer"),
    ("parcel parcels mates wards youth", "claimed batch, batch members, lease watcher, heartbeat delay"),
    ("letter letters post posts", "pending send; dead letter"),
    ("switchboard board", "notification router"),
    ("survey surveys surveyor crowd", "bulk poll, bulk threshold"),
    ("hungry curious company rush", "may have jobs, due unknown, settle delay, saturated"),
    ("doubtful unsure", "may be cancelled, leases unknown"),
    ("patience patient", "timeout, shield"),
    ("place places line lines ripen", "admit, backlog, promote due"),
    ("holder holders gate gates road roads", "key owner, readiness, load path"),
    ("watch watches watcher watchers", "completion waiter, rescue leases"),
    ("tidy upkeep", "prune, maintenance"),
    ("lazy", "asynchronous commit"),
    ("nudge nudges nice bites", "wake-up timer, low priority, chunks"),
    ("verdict verdicts transience translate translates", "error classification"),
    ("care", "cancellation policy"),
]
FORBIDDEN = {word: instead for words, instead in INSTEAD for word in words.split()}

# Names in which such a word has its everyday meaning, or is a term of the field.
FINE = {
    # a line of text
    *("error_line", "first_line", "lines", "line_characters", "live_line", "line_formatter", "quoted_lines"),
    *("described_line", "members_line", "one_line"),
    "lease_watchers",
    "translate_errors",  # psycopg's errors become ours
    *("driver_error", "wrap_driver_errors"),  # psycopg is a driver
    *("driver", "cluster_driver"),  # of Postgres in a peer; of Spark
}
# Words that tests, benchmarks, examples and pages may use in their everyday meaning: lines of output, words of an
# argument, the place of a fault, steps of a state machine or of an export, a parcel that a shop sends.
EVERYDAY = {"line", "lines", "word", "words", "place", "places", "step", "steps", "letter", "post", "parcel"}
DEAD_LETTER = re.compile("dead_letters?|deadletters?", re.IGNORECASE)


def split(name: str) -> list[str]:
    """The words of a name: LeaseWatchers and lease_watchers are lease, watchers."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)]


def names_in_python(tree: ast.Module) -> Iterator[str]:
    """Classes, functions, parameters, attributes and constants; not local variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
            given = node.args
            for argument in (
                *given.posonlyargs,
                *given.args,
                *given.kwonlyargs,
                given.vararg,
                given.kwarg,
            ):
                if argument is not None:
                    yield argument.arg
        elif isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        if isinstance(node, ast.Module | ast.ClassDef):
            for statement in node.body:
                targets = statement.targets if isinstance(statement, ast.Assign) else []
                targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
                yield from (target.id for target in targets if isinstance(target, ast.Name))


def names_in_sql(text: str) -> Iterator[str]:
    """Everything but comments and quoted text: tables, columns, functions, parameters, parts of a statement."""
    text = re.sub(r"--[^\n]*", "", text)
    yield from re.findall(r"[A-Za-z_]\w*", re.sub(r"'(?:[^']|'')*'", "", text))


def names(root: Path) -> Iterator[tuple[str, str]]:
    """Each file below the root, with a name in it; its own name is one."""
    for path in sorted((*root.rglob("*.py"), *root.rglob("*.sql"))):
        file = path.relative_to(root).as_posix()
        yield file, path.stem.removeprefix("__").removesuffix("__")
        text = path.read_text("utf-8")
        for name in names_in_python(ast.parse(text)) if path.suffix == ".py" else names_in_sql(text):
            if not name.startswith("__"):
                yield file, name


def given_up(root: Path, everyday: Set[str] = frozenset()) -> set[str]:
    """The names with a word that was given up, and what to use instead."""
    found = set()
    for file, name in names(root):
        words = split(DEAD_LETTER.sub("", name))
        for word in words:
            if word in FORBIDDEN.keys() - everyday and "_".join(words) not in FINE:
                found.add(f"{file}: {name}: instead of {word!r} use one of: {FORBIDDEN[word]}")
    return found


def test_no_name_uses_a_word_that_was_given_up():
    assert given_up(ROOT) == set()


@pytest.mark.parametrize("folder", ["tests", "benchmarks", "examples", "docs"])
def test_no_name_outside_of_the_package_does(folder):
    assert {found for found in given_up(REPOSITORY / folder, EVERYDAY) if ": test_" not in found} == set()


# -- names of tests, which are sentences

NO_SENTENCE = re.compile("test_(?:what|who|whoever|whatever|whose)_")


def test_the_name_of_a_test_is_a_sentence():
    found = [name for _, name in names(REPOSITORY / "tests") if NO_SENTENCE.match(name)]

    assert found == []


def test_a_name_that_is_no_sentence_is_found():
    assert NO_SENTENCE.match("test_what_has_ended_is_settled")
    assert not NO_SENTENCE.match("test_a_finished_job_is_settled")


BROKEN = {
    "a.py": "class Surveyor: ...",
    "b.py": "def f(patience): ...",
    "c.py": "class A:\n    may_doubt: int\n    unsure: bool = False",
    "d.py": "class A:\n    def f(self):\n        self._told_word = 1",
    "e.py": "_PATIENCE = 1",
    "switchboard.py": "",
    "g.sql": "SELECT 1 AS asleep -- turn\nFROM trioboss.idle_dispatcher",
    "ripen.sql": "SELECT 1",
    "i.sql": "SELECT :lazy::boolean",
}
SOUND = {
    "a.py": "class DeadLetterJob:\n    dead_letter: str\n    _error_line: str",
    "b.py": "def f(deadline, keyword, password, lookup):\n    line = 1",
    "c.py": "class LeaseWatchers:\n    def __attrs_post_init__(self): ...",
    "d.sql": "-- its turn\nSELECT 'gate' AS dead_letter",
}


@pytest.mark.parametrize("file", BROKEN)
def test_a_word_that_was_given_up_is_found(tmp_path, file):
    (tmp_path / file).write_text(BROKEN[file])

    assert len(given_up(tmp_path)) == 1


@pytest.mark.parametrize("file", SOUND)
def test_other_names_are_fine(tmp_path, file):
    (tmp_path / file).write_text(SOUND[file])

    assert given_up(tmp_path) == set()


# -- the glossary

ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in GLOSSARY.splitlines()
    if line.startswith("| ") and not line.startswith("| term")
]


@functools.cache
def known_names() -> set[str]:
    """All names and statements of the code."""
    return {name for _, name in names(ROOT)}


@functools.cache
def package_text() -> str:
    """The code with its comments, in one line: a term may be spread over two lines of a comment."""
    texts = [path.read_text("utf-8") for path in sorted((*ROOT.rglob("*.py"), *ROOT.rglob("*.sql")))]
    return re.sub(r"\s+(?:(?:#|--)\s+)?", " ", "\n".join(texts))


def occurs(term: str) -> bool:
    """Whether the package has the term, in a sentence or as a name: idle marker, idle_marker, IdleMarkers."""
    words = "[ _-]?".join(re.split("[ -]", term))
    return (
        re.search(rf"(?<![a-zA-Z]){words}(?:s|d|ed|ing)?(?![a-z])", package_text(), re.IGNORECASE) is not None
    )


def test_the_glossary_has_only_the_few_terms_that_are_ours():
    assert 20 <= len(ROWS) <= 32


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_term_is_one_sentence(row):
    assert re.fullmatch(r"[A-Z](?:(?![.!?] ).)*\.", row[1])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_term_is_in_the_code(row):
    term, _, code = row
    named = re.findall(r"`([^`]+)`", code)

    assert occurs(term)
    assert named
    assert set(named) <= known_names()


def test_a_term_that_is_not_in_the_code_is_found():
    assert not occurs("switchboard")
    assert not occurs("worker parcel")


def test_a_term_is_explained_once_and_terms_are_in_alphabetical_order():
    terms = [row[0] for row in ROWS]

    assert terms == sorted(set(terms))


# -- phrases in documents

PHRASES = re.compile(
    r"\bwhoever\b|\bby hand\b|\bwithout a word\b|\bcomplains?\b|\bfrom the dead\b", re.IGNORECASE
)
SKIPPED = {".venv", "_generated", "build", "node_modules", "published"}
DOCUMENTS = [
    path
    for path in sorted((*REPOSITORY.rglob("*.md"), *(REPOSITORY / "examples").glob("*.py")))
    if not SKIPPED & set(path.relative_to(REPOSITORY).parts)
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_no_document_uses_a_phrase_that_was_given_up(document):
    assert PHRASES.findall(document.read_text("utf-8")) == []


# -- the width of prose

PROSE_WIDTH = 120
GENERATED = {"conformance.md"}  # one table of the rows of other documents
# Code, a row of a table, an address that cannot be broken, a line of HTML.
NO_PROSE = re.compile(r"\s*(?:\||```|<|\[[^\]]+\]: )|.*\s$")
COMMENTS = sorted(path for path in (ROOT / "sql").rglob("*.sql"))


def wide_lines(path: Path) -> list[str]:
    """The lines of prose that are too long: of a document, or of the comments of a statement."""
    text = path.read_text("utf-8")
    if path.suffix == ".sql":
        lines = [line for line in text.splitlines() if line.lstrip().startswith("-- ")]
    else:
        lines = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL).splitlines()
    return [line for line in lines if len(line) > PROSE_WIDTH and not NO_PROSE.match(line)]


@pytest.mark.parametrize(
    "path", [*DOCUMENTS, *COMMENTS], ids=lambda path: path.relative_to(REPOSITORY).as_posix()
)
def test_prose_has_at_most_120_characters_a_line(path):
    assert path.name in GENERATED or wide_lines(path) == []


def test_a_line_that_is_too_wide_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"{'word ' * 30}end\n\n| {'cell ' * 30}|\n\n```sh\n{'code ' * 30}end\n```\n")

    assert wide_lines(page) == [f"{'word ' * 30}end"]


# -- sentences

# "Whoever fails a job", "What has ended": a sentence names its subject by a noun. A question may begin like that.
NO_NOUN = re.compile(
    r"""(?:^\s*(?:[#]|--|//)?\s*(?:\"{3}|<p[^>]*>)?|[.;!]\s)(?:Who|Whoever|What|Whatever|Whose)\b[^?\n]*$""",
    re.MULTILINE,
)
CODE = sorted(
    path
    for folder in ("trioboss", "tests", "benchmarks", "examples", "docs")
    for kind in ("*.py", "*.sql", "*.html")
    for path in (REPOSITORY / folder).rglob(kind)
    if not SKIPPED & set(path.relative_to(REPOSITORY).parts) and path != Path(__file__)
)


def without_noun(text: str) -> list[str]:
    return [found.strip() for found in NO_NOUN.findall(text)]


def test_sentences_name_their_subject():
    found = {
        path.relative_to(REPOSITORY).as_posix(): without_noun(path.read_text("utf-8"))
        for path in CODE + DOCUMENTS
    }

    assert {path: sentences for path, sentences in found.items() if sentences} == {}


@pytest.mark.parametrize(
    "text",
    [
        '"""What a worker does."""',
        "    # Whoever fails a job does not tell when.",
        "-- It waits. Who never began has not failed.",
        '<p class="lead">What people did.</p>',
    ],
)
def test_a_sentence_without_a_noun_is_found(text):
    assert len(without_noun(text)) == 1


def test_a_question_and_a_word_in_a_sentence_are_fine():
    assert without_noun("# What is due?\n# It tells what is due, and who waits.\nWhatIsDue = 1") == []
