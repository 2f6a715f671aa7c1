"""The files and processes that a crash leaves, and how the next start deals with them."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from server_processes import (
    freeze,
    kill_hard,
    query,
    reaper_of,
    reapers_of,
    server_of,
    servers_of,
    wait_for_exit,
    wait_until,
    wait_until_gone,
)

from trioboss.postgres.embedded import EmbeddedPostgres
from trioboss.postgres.embedded.folders import socket_folder_of
from trioboss.postgres.embedded.postmaster import find_postmaster


@pytest.fixture
def other_program():
    """A program of the same user that has the pid of a former server."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        assert process.poll() is None, "the other program was taken for a server"
        process.kill()


def test_data_survives_a_server_that_is_killed(home, start_client):
    client = start_client()
    dsn = client.wait_for_dsn()
    query(dsn, "create table kept as select 42 as answer")
    kill_hard(server_of(home))
    client.leave()

    with EmbeddedPostgres(durable=False) as server:
        assert query(server.dsn, "select answer from kept") == 42


def test_a_killed_server_is_started_again_by_the_next_client_while_others_hold_shares(home, start_client):
    dsn = start_client().wait_for_dsn()
    kill_hard(server_of(home))

    with EmbeddedPostgres(durable=False):
        assert query(dsn, "select 1") == 1


def test_ensure_running_starts_a_killed_server_again_at_the_same_address(home):
    with EmbeddedPostgres(durable=False) as server:
        before = server.dsn
        kill_hard(server_of(home))

        server.ensure_running()

        assert server.dsn == before
        assert query(before, "select 1") == 1


def ignored_signals(pid):
    return signals_in("SigIgn:", pid)


def pending_signals(pid):
    return signals_in("ShdPnd:", pid)


def signals_in(field, pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    bits = next(int(line.split()[1], 16) for line in lines if line.startswith(field))
    return {number for number in range(1, 32) if bits & 1 << (number - 1)}


def has_begun_to_stop(data):
    postmaster = find_postmaster(data)
    return postmaster is None or not postmaster.is_ready


def test_a_server_that_is_being_stopped_is_waited_for_and_replaced(home, major, start_client):
    start_client().wait_for_dsn()
    stopped = server_of(home)
    os.kill(stopped, signal.SIGINT)
    wait_until(lambda: has_begun_to_stop(home / f"pgdata-{major}"))

    with EmbeddedPostgres(durable=False) as server:
        assert query(server.dsn, "select 1") == 1
        assert server_of(home) != stopped


def pid_file_of(home, major):
    return home / f"pgdata-{major}" / "postmaster.pid"


def leave_pid_file(home, major, pid):
    """Leave nothing but the pid file, as a reboot does, with the pid of another process."""
    with EmbeddedPostgres(durable=False):
        _, *lines = pid_file_of(home, major).read_text().splitlines()
        kill_hard(server_of(home))
    wait_until_gone(home)
    pid_file_of(home, major).write_text("\n".join([str(pid), *lines, ""]))


def test_a_left_over_pid_file_does_not_prevent_the_next_start(home, major, other_program):
    leave_pid_file(home, major, other_program.pid)

    with EmbeddedPostgres(durable=False) as server:
        assert query(server.dsn, "select 1") == 1


def test_a_left_over_socket_lock_does_not_prevent_the_next_start(home, major, other_program):
    leave_pid_file(home, major, other_program.pid)
    sockets = socket_folder_of(home / f"pgdata-{major}")
    sockets.mkdir(mode=0o700)
    (sockets / ".s.PGSQL.5432.lock").write_text(pid_file_of(home, major).read_text())

    with EmbeddedPostgres(durable=False) as server:
        assert query(server.dsn, "select 1") == 1


def test_a_pid_file_with_the_pid_of_another_server_is_ignored(home, major):
    with EmbeddedPostgres(keep_data=False, durable=False) as other:
        leave_pid_file(home, major, server_of(other.home))

        with EmbeddedPostgres(durable=False) as server:
            assert query(server.dsn, "show data_directory") == str(server.data)
        wait_until_gone(home)

        assert query(other.dsn, "select 1") == 1
    wait_until(lambda: not other.home.exists())


def test_the_sockets_of_a_killed_server_are_deleted_after_its_last_client(home):
    with EmbeddedPostgres(durable=False) as server:
        sockets = find_postmaster(server.data).socket_folder
        kill_hard(server_of(home))

    wait_until_gone(home)
    assert not Path(sockets).exists()


def test_an_incomplete_data_directory_is_created_again(empty_home, major):
    unfinished = empty_home / f"pgdata-{major}.unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text(f"{major}\n")

    with EmbeddedPostgres(durable=False) as server:
        assert query(server.dsn, "select 1") == 1

    assert not unfinished.exists()


def test_a_killed_reaper_is_replaced_by_the_next_client(home, start_client):
    first = start_client()
    first.wait_for_dsn()
    kill_hard(reaper_of(home))
    second = start_client()
    second.wait_for_dsn()

    server = server_of(home)
    first.kill()
    second.kill()

    wait_for_exit(server)


def test_a_killed_reaper_is_replaced_by_a_client_that_leaves(home, start_client):
    client = start_client()
    client.wait_for_dsn()
    server = server_of(home)
    kill_hard(reaper_of(home))

    client.leave()

    wait_for_exit(server)


def test_a_server_whose_reaper_and_clients_were_killed_is_joined_and_then_stopped(home, start_client):
    client = start_client()
    client.wait_for_dsn()
    orphan = server_of(home)
    kill_hard(reaper_of(home))
    client.kill()

    with EmbeddedPostgres():
        assert servers_of(home) == [orphan]

    wait_for_exit(orphan)


def test_a_reaper_killed_while_it_stops_the_server_does_not_block_the_next_client(home, major, start_client):
    client = start_client()
    client.wait_for_dsn()
    stopping, reaper = server_of(home), reaper_of(home)
    freeze(stopping)
    client.leave()
    wait_until(lambda: signal.SIGINT in pending_signals(stopping))
    kill_hard(reaper)
    os.kill(stopping, signal.SIGCONT)
    wait_until(lambda: has_begun_to_stop(home / f"pgdata-{major}"))

    with EmbeddedPostgres(durable=False) as server:
        assert query(server.dsn, "select 1") == 1
        assert servers_of(home) != [stopping]


def test_a_reaper_ignores_the_signals_that_ask_it_to_end(home):
    with EmbeddedPostgres(durable=False):
        reaper = reaper_of(home)
        asking = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}

        wait_until(lambda: asking <= ignored_signals(reaper))


def test_every_server_has_one_reaper(home, start_client):
    clients = [start_client() for _ in range(4)]
    for client in clients:
        client.wait_for_dsn()

    assert len(reapers_of(home)) == 1
