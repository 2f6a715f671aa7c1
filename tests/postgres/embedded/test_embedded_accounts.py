"""The account that runs the server: an ordinary user, and the two ways for root."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from server_processes import Client, query, server_of, servers_of, wait_until_gone

from trioboss.errors import NoPostgres
from trioboss.postgres.embedded import EmbeddedPostgres, account, folders
from trioboss.postgres.embedded.account import choose_account
from trioboss.postgres.embedded.binaries import find_binaries

NOBODY = pwd.getpwnam("nobody")

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
as_user = pytest.mark.skipif(os.geteuid() == 0, reason="only for an ordinary user")


@pytest.fixture
def open_folder(empty_home, monkeypatch):
    """A folder that every account can enter, to hold the home; unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="open-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        monkeypatch.setenv("TRIOBOSS_HOME", str(folder / "home"))
        yield folder
        wait_until_gone(folder)


@pytest.fixture
def as_nobody(monkeypatch):
    monkeypatch.setenv("TRIOBOSS_PG_USER", "nobody")


def modes_up_from(path):
    return {parent: parent.stat().st_mode for parent in (path, *path.parents)}


@as_user
def test_an_ordinary_user_runs_the_server_under_the_own_account():
    assert choose_account().prefix == ()
    assert choose_account().owner == os.geteuid()


@as_root
def test_root_runs_the_server_in_a_user_namespace(home):
    if choose_account().uid is not None:
        pytest.skip("the kernel allows no user namespaces here")

    with EmbeddedPostgres(durable=False) as server:
        inside, outside, _ = Path(f"/proc/{server_of(home)}/uid_map").read_text().split()

        assert (inside, outside) == ("65534", "0")
        assert server.data.stat().st_uid == 0
        assert query(server.dsn, "select 1") == 1


@as_root
def test_root_becomes_an_account_where_namespaces_are_forbidden(monkeypatch):
    monkeypatch.setattr(account, "_USER_NAMESPACE", ("false",))
    account._namespaces_work.cache_clear()
    try:
        assert choose_account().uid == (_uid_of("postgres") or NOBODY.pw_uid)
    finally:
        account._namespaces_work.cache_clear()


def _uid_of(name):
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


@pytest.fixture(scope="module")
def server_of_nobody():
    """A server that root has started under the account `nobody`."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TRIOBOSS_PG_USER", "nobody")
        with EmbeddedPostgres(keep_data=False, durable=False) as server:
            yield server
    wait_until_gone(server.home)


@as_root
def test_root_can_name_the_account(server_of_nobody):
    assert Path(f"/proc/{server_of(server_of_nobody.home)}").stat().st_uid == NOBODY.pw_uid
    assert server_of_nobody.data.stat().st_uid == NOBODY.pw_uid
    assert query(server_of_nobody.dsn, "select 1") == 1


@as_root
def test_the_password_and_the_log_belong_to_root(server_of_nobody):
    files = [path for path in server_of_nobody.home.iterdir() if path.is_file()]

    assert {(path.stat().st_uid, path.stat().st_mode & 0o777) for path in files} == {(0, 0o600)}


@as_root
def test_an_account_that_does_not_exist_is_named_in_the_error(monkeypatch):
    monkeypatch.setenv("TRIOBOSS_PG_USER", "no_such_account")

    with pytest.raises(NoPostgres, match="has no account no_such_account: set TRIOBOSS_PG_USER"):
        EmbeddedPostgres().start()


@as_root
def test_a_strict_umask_does_not_lock_the_account_out(open_folder, as_nobody):
    before = os.umask(0o077)
    try:
        with EmbeddedPostgres(durable=False) as server:
            assert query(server.dsn, "select 1") == 1
    finally:
        os.umask(before)


def hide_programs(folder):
    """Put the programs into a folder that only root can enter, and return it."""
    hidden = folder / "hidden"
    hidden.mkdir(mode=0o700)
    original = find_binaries().folder
    package = original.parent.parent
    copy = hidden / package.name / original.parent.name
    shutil.copytree(original.parent, copy, copy_function=os.link)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, hidden / libraries.name, copy_function=os.link)
    return copy / original.name


@as_root
def test_programs_that_the_account_cannot_reach_are_copied_and_no_mode_is_changed(
    open_folder, as_nobody, monkeypatch
):
    programs = hide_programs(open_folder)
    before = modes_up_from(programs) | modes_up_from(open_folder)
    monkeypatch.setenv("TRIOBOSS_PG_BIN", str(programs))

    with EmbeddedPostgres(durable=False) as server:
        assert query(server.dsn, "select 1") == 1

    assert {path: path.stat().st_mode for path in before} == before


@as_root
def test_a_copy_of_the_programs_is_used_again(open_folder, as_nobody, monkeypatch):
    monkeypatch.setenv("TRIOBOSS_PG_BIN", str(hide_programs(open_folder)))
    with EmbeddedPostgres(durable=False) as server:
        (copy,) = server.home.glob("binaries-*")
        made = copy.stat().st_ino
    wait_until_gone(open_folder)

    with EmbeddedPostgres(durable=False) as server:
        assert [path.stat().st_ino for path in server.home.glob("binaries-*")] == [made]


@as_root
def test_a_home_that_the_account_cannot_reach_is_refused_and_its_mode_not_changed(tmp_path, as_nobody):
    tmp_path.chmod(0o700)
    before = modes_up_from(tmp_path)

    with pytest.raises(NoPostgres, match=rf"user {NOBODY.pw_uid}, which cannot enter .*: set TRIOBOSS_HOME"):
        EmbeddedPostgres(tmp_path / "home").start()

    assert modes_up_from(tmp_path) == before


@as_root
def test_a_namespace_needs_no_mode_changed(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    programs = hide_programs(tmp_path)
    before = modes_up_from(programs)
    monkeypatch.setenv("TRIOBOSS_PG_BIN", str(programs))

    with EmbeddedPostgres(tmp_path / "home", durable=False) as server:
        assert query(server.dsn, "select 1") == 1
    wait_until_gone(tmp_path)

    assert {path: path.stat().st_mode for path in before} == before


@as_root
def test_data_of_another_user_is_refused(home, major):
    os.chown(home / f"pgdata-{major}", NOBODY.pw_uid, -1)

    with pytest.raises(
        NoPostgres, match=f"belongs to user {NOBODY.pw_uid}, but the server would run as user 0"
    ):
        EmbeddedPostgres().start()


@as_root
def test_the_default_home_of_root_is_one_that_the_account_can_reach(tmp_path, as_nobody, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert folders._choose_home(choose_account()) == Path("/var/lib/trioboss")


@as_root
def test_root_with_the_capabilities_of_a_container_can_share_and_stop_the_server(
    open_folder, as_nobody, bare_package
):
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv")
    in_container = ("setpriv", "--bounding-set", "-sys_admin,-sys_ptrace", sys.executable)
    starter = Client(bare_package, python=in_container)
    joiner = Client(bare_package, python=in_container)
    try:
        assert starter.wait_for_dsn() == joiner.wait_for_dsn()
        assert len(servers_of(open_folder)) == 1
        starter.leave()
        joiner.kill()
    finally:
        starter.clean_up()
        joiner.clean_up()


@as_root
def test_an_ordinary_user_needs_no_privileges(open_folder, bare_package, monkeypatch):
    nobody = {"user": NOBODY.pw_uid, "group": NOBODY.pw_gid, "extra_groups": []}
    programs = hide_programs(open_folder)
    (open_folder / "hidden").chmod(0o755)
    os.chown(open_folder, NOBODY.pw_uid, -1)
    monkeypatch.setenv("TRIOBOSS_PG_BIN", str(programs))
    client = Client(bare_package, python=(find_python_for(nobody),), **nobody)
    try:
        dsn = client.wait_for_dsn()
        assert query(dsn, "select 1") == 1
        assert Path(f"/proc/{server_of(open_folder)}").stat().st_uid == NOBODY.pw_uid
        client.kill()
    finally:
        client.clean_up()


def find_python_for(user):
    """Return an interpreter that this user can run: ours may be in a home that it cannot enter."""
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            subprocess.run([python, "-c", "from typing import Self"], check=True, capture_output=True, **user)
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    pytest.skip("no Python 3.11 that another user can run")
