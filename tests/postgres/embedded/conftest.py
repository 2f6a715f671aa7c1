"""Real servers and real processes. Each home is checked after its test: no process of its server may be left."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from server_processes import Client, kill_hard, processes_of, query, wait_until_gone

import trioboss.errors
import trioboss.postgres.embedded
from trioboss.postgres.embedded import EmbeddedPostgres
from trioboss.postgres.embedded.binaries import find_binaries

VARIABLES = ("TRIOBOSS_DSN", "DATABASE_URL", "TRIOBOSS_HOME", "TRIOBOSS_PG_BIN", "TRIOBOSS_PG_USER")


@pytest.fixture(autouse=True)
def needs_pidfd():
    if not hasattr(os, "pidfd_open"):
        pytest.skip(f"processes are observed by pidfd and /proc, which {sys.platform} does not have")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def major():
    return find_binaries().major


@pytest.fixture(scope="session")
def initialised(tmp_path_factory):
    """A home with data in it. A copy of it is much faster than initdb.

    Without the template databases, which no test uses, it has a third of the files.
    """
    home = tmp_path_factory.mktemp("initialised")
    with pytest.MonkeyPatch.context() as environment:
        for name in VARIABLES:  # the test that requests it first may have set an account
            environment.delenv(name, raising=False)
        with EmbeddedPostgres(home, durable=False) as server:
            query(server.dsn, "update pg_database set datistemplate = false")
            query(server.dsn, "drop database template0")
            query(server.dsn, "drop database template1")
        wait_until_gone(home)
    yield home
    shutil.rmtree(home)


@pytest.fixture
def empty_home(tmp_path, monkeypatch):
    """A home that does not exist yet, named by TRIOBOSS_HOME."""
    home = tmp_path / "home"
    monkeypatch.setenv("TRIOBOSS_HOME", str(home))
    yield home
    try:
        wait_until_gone(home)
    finally:
        for pid in processes_of(home):
            kill_hard(pid)
        shutil.rmtree(home, ignore_errors=True)  # pytest would keep the folders of all tests


@pytest.fixture
def home(initialised, empty_home):
    """A home with an empty database in it, named by TRIOBOSS_HOME."""
    shutil.copytree(initialised, empty_home)
    return empty_home


@pytest.fixture(scope="session")
def bare_package():
    """A folder with nothing of trioboss but the embedded package and the errors, readable by all users."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    embedded = folder / "trioboss" / "postgres" / "embedded"
    source = Path(trioboss.postgres.embedded.__file__).parent
    shutil.copytree(source, embedded, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(trioboss.errors.__file__, folder / "trioboss")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def start_client(empty_home, bare_package):
    """Start another process that joins or starts the server of the test's home."""
    clients = []

    def start(**options):
        clients.append(Client(bare_package, **options))
        return clients[-1]

    yield start
    for client in clients:
        client.clean_up()
