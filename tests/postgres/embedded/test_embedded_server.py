"""The properties of a server, its errors, and its files."""

import shutil
import stat
import tempfile
from pathlib import Path
from urllib.parse import unquote

import psycopg
import pytest
from server_processes import query, wait_until, wait_until_gone

from trioboss.errors import DatabaseUnavailable, NoPostgres, UsageError
from trioboss.postgres.embedded import EmbeddedPostgres, cluster, folders, postmaster
from trioboss.postgres.embedded.account import choose_account
from trioboss.postgres.embedded.folders import socket_folder_of
from trioboss.postgres.embedded.locks import FileLock
from trioboss.postgres.embedded.postmaster import find_postmaster


def test_data_survives_the_last_client(home):
    with EmbeddedPostgres(durable=False) as server:
        query(server.dsn, "create table kept as select 42 as answer")
    wait_until_gone(home)

    with EmbeddedPostgres(durable=False) as server:
        assert query(server.dsn, "select answer from kept") == 42


@pytest.mark.parametrize("setting", ["fsync", "synchronous_commit", "full_page_writes", "data_checksums"])
def test_a_server_is_durable_by_default(empty_home, setting, durable_server):
    assert query(durable_server.dsn, f"show {setting}") == "on"


@pytest.fixture(scope="module")
def durable_server(tmp_path_factory):
    home = tmp_path_factory.mktemp("durable") / "new"
    with EmbeddedPostgres(home) as server:
        yield server
    wait_until_gone(home)


def test_text_is_utf8_and_sorts_alike_on_every_machine(durable_server):
    described = "select concat_ws(' ', pg_encoding_to_char(encoding), datcollate) from pg_database limit 1"

    assert query(durable_server.dsn, described) == "UTF8 C"
    assert query(durable_server.dsn, "select 'B' < 'a' and 'z' < 'ä'")


def test_upper_and_lower_case_work_beyond_ascii(durable_server, major):
    if major < 17:
        pytest.skip("the builtin locale C.UTF-8 came with Postgres 17")

    assert query(durable_server.dsn, "select upper('ä')") == "Ä"


@pytest.mark.parametrize("read", [postmaster._read_command_from_proc, postmaster._read_command_from_ps])
def test_a_server_is_recognized_by_its_command_line_too(durable_server, read):
    if shutil.which("ps") is None:
        pytest.skip("no ps")

    assert f" -D {durable_server.data} " in read(find_postmaster(durable_server.data).pid)


def test_only_the_owner_can_connect(durable_server):
    found = find_postmaster(durable_server.data)
    folders = [durable_server.home, durable_server.data, Path(found.socket_folder)]

    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700] * 3
    assert found.listen_address == ""


def test_files_beside_the_data_are_private(durable_server):
    files = [path for path in durable_server.home.iterdir() if path.is_file()]

    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_a_home_with_a_path_too_long_for_a_socket_works(tmp_path, initialised):
    home = tmp_path.joinpath(*["a_rather_long_name_for_a_folder"] * 5)
    shutil.copytree(initialised, home)

    with EmbeddedPostgres(home, durable=False) as server:
        assert query(server.dsn, "select 1") == 1
    wait_until_gone(home)


@pytest.mark.parametrize("name", ["x" * 100, "a,b"], ids=["too long for a socket", "two hosts in a dsn"])
def test_a_temporary_folder_that_cannot_contain_sockets_works(home, tmp_path, monkeypatch, name):
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))

    with EmbeddedPostgres(durable=False) as server:
        assert query(server.dsn, "select 1") == 1


@pytest.fixture
def short_folder(monkeypatch):
    """A folder for temporary files whose name needs quoting everywhere; pytest's are too long for sockets."""
    with tempfile.TemporaryDirectory(prefix="ä 'b' 5%&c?=") as folder:
        monkeypatch.setattr("tempfile.tempdir", folder)
        yield Path(folder)


def test_paths_with_special_characters_work(short_folder):
    home = short_folder / "home"

    with EmbeddedPostgres(home, durable=False) as server:
        assert query(server.dsn, "show data_directory") == str(server.data)
        assert find_postmaster(server.data).socket_folder.startswith(str(short_folder))
    wait_until_gone(home)


def test_the_sockets_are_elsewhere_if_another_user_has_taken_the_folder(home, major, short_folder, tmp_path):
    usual = socket_folder_of(home / f"pgdata-{major}")
    usual.symlink_to(tmp_path)

    with EmbeddedPostgres(durable=False) as server:
        assert query(server.dsn, "select 1") == 1
        assert Path(find_postmaster(server.data).socket_folder) != usual
    wait_until_gone(home)

    assert list(short_folder.iterdir()) == [usual]
    assert home.exists()


def test_the_settings_are_those_of_the_process_that_starts_the_server(home):
    with EmbeddedPostgres(durable=False, settings={"work_mem": "7MB", "jit": False}) as starter:
        with EmbeddedPostgres(settings={"work_mem": "9MB"}) as joiner:
            assert query(joiner.dsn, "show work_mem") == "7MB"
        assert query(starter.dsn, "show jit") == "off"


def test_a_setting_of_the_caller_overrides_ours(home):
    with EmbeddedPostgres(durable=False, settings={"max_connections": 17, "fsync": True}) as server:
        assert query(server.dsn, "show max_connections") == "17"
        assert query(server.dsn, "show fsync") == "on"


def test_tcp_is_on_loopback_only_and_the_dsn_works(home):
    with EmbeddedPostgres(durable=False, tcp=True) as server:
        assert query(server.dsn, "select host(inet_server_addr())") == "127.0.0.1"
        assert query(server.dsn, "show listen_addresses") == "127.0.0.1"


def test_tcp_requires_the_password(home):
    with EmbeddedPostgres(durable=False, tcp=True) as server:
        without = server.dsn.replace("passfile=", "passfile=/nowhere")
        wrong = server.dsn.replace("postgres@", "postgres:guess@")

        with pytest.raises(psycopg.OperationalError, match="no password supplied"):
            query(without, "select 1")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            query(wrong, "select 1")


def test_the_password_is_in_a_private_file_and_not_in_the_dsn(home):
    with EmbeddedPostgres(durable=False, tcp=True) as server:
        passfile = Path(unquote(server.dsn.partition("passfile=")[2].partition("&")[0]))
        password = passfile.read_text().strip().rpartition(":")[2]

        assert len(password) >= 32
        assert password not in server.dsn
        assert stat.S_IMODE(passfile.stat().st_mode) == 0o600


def test_every_home_has_a_password_of_its_own(home, durable_server):
    passwords = [
        path.read_text() for folder in (home, durable_server.home) for path in folder.glob("*.pgpass")
    ]

    assert len(set(passwords)) == 2


def test_tcp_is_refused_if_the_server_runs_without_it(home):
    with (
        EmbeddedPostgres(durable=False),
        pytest.raises(UsageError, match="was started without it and is in use"),
    ):
        EmbeddedPostgres(tcp=True).start()


def test_the_error_of_a_failed_start_quotes_the_log(home):
    broken = EmbeddedPostgres(settings={"shared_preload_libraries": "no_such_library"})

    with pytest.raises(NoPostgres, match=r"ended while it started(.|\n)*no_such_library"):
        broken.start()


def test_only_the_lines_of_the_failed_start_are_quoted(home, major):
    (home / f"pgdata-{major}.log").write_text("an old line\n")

    with pytest.raises(NoPostgres) as caught:
        EmbeddedPostgres(settings={"no_such_setting": 1}).start()

    assert "an old line" not in str(caught.value)


def test_after_a_failed_start_the_next_one_works(home):
    with pytest.raises(NoPostgres):
        EmbeddedPostgres(settings={"max_connections": "many"}).start()

    with EmbeddedPostgres(durable=False) as server:
        assert query(server.dsn, "select 1") == 1


def test_waiting_for_a_server_that_does_not_get_ready_ends(home, major):
    with (
        FileLock.try_exclusive(home / f"pgdata-{major}.server"),
        pytest.raises(DatabaseUnavailable, match=r"is not ready .* gave up after 0.05 seconds"),
    ):
        EmbeddedPostgres(timeout=0.05).start()


def test_waiting_for_the_last_server_to_stop_ends(home, major):
    with (
        FileLock.try_exclusive(home / f"pgdata-{major}.users"),
        pytest.raises(DatabaseUnavailable, match=r"is still being stopped: gave up after 0.05 seconds"),
    ):
        EmbeddedPostgres(timeout=0.05).start()


def test_data_of_another_major_version_is_refused_and_kept(home, major):
    (home / f"pgdata-{major}" / "PG_VERSION").write_text("12\n")

    with pytest.raises(
        NoPostgres, match=f"holds data of Postgres 12, but this is Postgres {major}.*TRIOBOSS_PG_BIN"
    ):
        EmbeddedPostgres().start()

    assert (home / f"pgdata-{major}" / "base").exists()


def test_a_newer_postgres_does_not_create_data_beside_older_data(home, major):
    (home / f"pgdata-{major}").rename(home / "pgdata-12")

    with pytest.raises(NoPostgres, match=f"holds pgdata-12, but this is Postgres {major}.*pg_dump"):
        EmbeddedPostgres().start()

    assert not (home / f"pgdata-{major}").exists()


def test_the_matching_data_is_used_when_there_is_older_data_too(home):
    (home / "pgdata-12").mkdir()
    (home / "pgdata-12" / "PG_VERSION").write_text("12\n")

    with EmbeddedPostgres(durable=False) as server:
        assert query(server.dsn, "select 1") == 1


def test_a_folder_that_is_not_postgres_data_is_refused_and_kept(empty_home, major):
    folder = empty_home / f"pgdata-{major}"
    folder.mkdir(parents=True)
    (folder / "other.txt").touch()

    with pytest.raises(NoPostgres, match="holds no Postgres data"):
        EmbeddedPostgres().start()

    assert (folder / "other.txt").exists()


def test_a_home_that_cannot_be_created_is_named_in_the_error(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(NoPostgres, match=r"no server can run here .*file.*: set TRIOBOSS_HOME"):
        EmbeddedPostgres(tmp_path / "file" / "home").start()


def test_the_error_contains_the_message_of_initdb(empty_home, monkeypatch):
    monkeypatch.setattr(cluster, "SUPERUSER", "pg_reserved")

    with pytest.raises(NoPostgres, match=r"initdb failed .*superuser name \"pg_reserved\" is disallowed"):
        EmbeddedPostgres().start()


def test_a_large_log_is_renamed(home, major):
    log = home / f"pgdata-{major}.log"
    log.write_bytes(b"x" * 5_000_000)

    with EmbeddedPostgres(durable=False) as server:
        assert server.log == log
        assert log.stat().st_size < 100_000

    assert log.with_suffix(".log.old").stat().st_size == 5_000_000


def test_temporary_data_is_deleted_with_the_server():
    with EmbeddedPostgres(keep_data=False, durable=False) as server:
        assert server.data.exists()
        sockets = Path(find_postmaster(server.data).socket_folder)

    wait_until_gone(server.home)
    assert not server.home.exists()
    assert not sockets.exists()


@pytest.mark.parametrize(
    ("durable", "needed", "named", "is_in_memory"),
    [
        pytest.param(False, 0, False, True, id="not durable"),
        pytest.param(True, 0, False, False, id="durable"),
        pytest.param(False, 1 << 60, False, False, id="not enough memory"),
        pytest.param(False, 0, True, False, id="another folder is named"),
    ],
)
def test_temporary_data_is_in_memory_if_it_may_be_lost_and_there_is_enough(
    tmp_path, monkeypatch, durable, needed, named, is_in_memory
):
    disk, memory = tmp_path / "disk", tmp_path / "memory"
    disk.mkdir()
    memory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(disk))
    monkeypatch.setattr(folders, "_MEMORY", memory)
    monkeypatch.setattr(folders, "_MEMORY_NEEDED", needed)
    if named:
        monkeypatch.setenv("TMPDIR", str(disk))
    else:
        monkeypatch.delenv("TMPDIR", raising=False)

    home = folders.make_temporary_home(choose_account(), durable=durable)

    assert home.parent == (memory if is_in_memory else disk)


def test_temporary_data_is_on_disk_if_there_is_no_file_system_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(folders, "_MEMORY", tmp_path / "none")

    assert folders.make_temporary_home(choose_account(), durable=False).parent == tmp_path


def test_temporary_data_is_deleted_after_a_failed_start_too(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    with pytest.raises(NoPostgres):
        EmbeddedPostgres(keep_data=False, durable=False, settings={"no_such_setting": 1}).start()

    wait_until(lambda: not list(tmp_path.iterdir()))


def test_a_named_home_cannot_be_temporary(tmp_path):
    with pytest.raises(UsageError, match="keep_data"):
        EmbeddedPostgres(tmp_path, keep_data=False)


def test_one_object_is_one_share(home):
    with EmbeddedPostgres(durable=False) as server, pytest.raises(UsageError, match="already started"):
        server.start()


def test_there_is_no_dsn_before_the_start(home):
    with pytest.raises(UsageError, match=r"call start\(\) first"):
        _ = EmbeddedPostgres().dsn


def test_an_older_postgres_of_the_system_works_too(tmp_path, monkeypatch):
    older = sorted(Path("/usr/lib/postgresql").glob("1[3-6]/bin"))
    if not older:
        pytest.skip("the system has no Postgres 13 to 16")
    monkeypatch.setenv("TRIOBOSS_PG_BIN", str(older[-1]))

    with EmbeddedPostgres(tmp_path / "home", durable=False) as server:
        assert server.data.name == f"pgdata-{older[-1].parent.name}"
        assert query(server.dsn, "show data_checksums") == "on"
    wait_until_gone(tmp_path)
