"""The roles of the tests, and the corpus of inputs for parsers."""

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import example
from psycopg.conninfo import make_conninfo

from trioboss.cli import main
from trioboss.testing import temporary_database

ROLES = ("producer", "worker", "reader", "admin")


def role(kind: str) -> str:
    """The role of the server: a name that breaks whatever does not quote."""
    return f'sec {kind}"; drop table x --'


def as_role(dsn: str, kind: str) -> str:
    """The same database for one of the roles."""
    return make_conninfo(dsn, user=role(kind))


@contextlib.contextmanager
def granted_database(server_dsn: str, template: str) -> Iterator[str]:
    """A migrated database in which all roles have their rights."""
    with temporary_database(server_dsn, template) as dsn:
        options = [text for kind in ROLES for text in (f"--{kind}", role(kind))]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            assert main(["grants", "--dsn", dsn, "--apply", *options]) == 0
        yield dsn


# -- inputs for parsers


def read_corpus(name: str) -> list[Any]:
    """The examples of a file of the corpus: one JSON value a line."""
    path = Path(__file__).with_name("corpus") / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def corpus(name: str) -> Callable[[Any], Any]:
    """Make the lines of a file of the corpus, each a list of arguments, examples of a test of Hypothesis."""

    def add(test: Any) -> Any:
        for arguments in read_corpus(name):
            test = example(*arguments)(test)
        return test

    return add
