"""Several processes share one server: its start, its end, and clients that are killed."""

import os
import signal
import subprocess
import time

import pytest
from server_processes import (
    freeze,
    kill_hard,
    query,
    reapers_of,
    server_of,
    servers_of,
    wait_for_exit,
    wait_until,
    wait_until_gone,
)

from trioboss.postgres.embedded import EmbeddedPostgres
from trioboss.postgres.embedded.account import choose_account
from trioboss.postgres.embedded.binaries import find_binaries
from trioboss.postgres.embedded.locks import FileLock


def test_six_processes_that_start_at_the_same_time_get_one_server(empty_home, start_client):
    clients = [start_client() for _ in range(6)]

    dsns = {client.wait_for_dsn() for client in clients}

    assert len(dsns) == 1
    assert len(servers_of(empty_home)) == 1
    assert query(dsns.pop(), "select 1") == 1


def test_the_last_of_six_stops_the_server(home, start_client):
    clients = [start_client() for _ in range(6)]
    for client in clients:
        client.wait_for_dsn()
    server = server_of(home)
    for client in clients[:-1]:
        client.leave()
    assert servers_of(home) == [server]

    clients[-1].leave()

    wait_for_exit(server)
    wait_until_gone(home)


def test_the_starter_may_leave_before_the_joiner(home, start_client):
    starter = start_client()
    starter.wait_for_dsn()
    joiner = start_client()
    dsn = joiner.wait_for_dsn()

    starter.leave()

    assert query(dsn, "select 1") == 1


def test_a_client_that_starts_while_the_server_is_being_stopped_gets_a_new_one(home, major, start_client):
    first = start_client()
    first.wait_for_dsn()
    stopping = server_of(home)
    freeze(stopping)
    first.leave()
    wait_until(lambda: share_is_refused(home / f"pgdata-{major}.users"))
    os.kill(stopping, signal.SIGCONT)

    with EmbeddedPostgres(durable=False) as server:
        assert server_of(home) != stopping
        assert query(server.dsn, "select 1") == 1


def share_is_refused(users):
    share = FileLock.try_shared(users)
    if share is not None:
        share.close()
    return share is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_the_server_ends_when_its_only_client_is_killed(home, start_client, number):
    client = start_client()
    client.wait_for_dsn()
    server = server_of(home)

    client.kill(number)

    wait_for_exit(server)


def test_a_killed_client_does_not_stop_the_server_of_others(home, start_client):
    killed, other = start_client(), start_client()
    killed.wait_for_dsn()
    dsn = other.wait_for_dsn()

    killed.kill()

    assert query(dsn, "select 1") == 1


def test_a_client_killed_while_it_creates_the_data_does_not_block_the_next(empty_home, start_client, major):
    client = start_client()
    wait_until((empty_home / f"pgdata-{major}.unfinished" / "PG_VERSION").exists)

    client.kill()

    with EmbeddedPostgres(durable=False) as server:
        assert query(server.dsn, "select 1") == 1


def test_a_server_whose_starter_is_killed_before_it_is_up_is_stopped(home, start_client):
    client = start_client()
    (server,) = wait_until(lambda: servers_of(home))

    client.kill()

    wait_for_exit(server)


def test_two_shares_in_one_process_are_independent(home):
    with EmbeddedPostgres(durable=False) as outer:
        with EmbeddedPostgres() as inner:
            assert inner.dsn == outer.dsn
        assert query(outer.dsn, "select 1") == 1


def test_a_forked_child_does_not_keep_the_share(home, start_client):
    client = start_client(expression="os.fork() or time.sleep(60)")
    _, child = client.wait_for_answer()
    server = server_of(home)

    client.leave()

    wait_for_exit(server)
    kill_hard(int(child))


def test_a_started_program_does_not_keep_the_share(home, start_client):
    client = start_client(expression="subprocess.Popen(['sleep', '60']).pid")
    _, child = client.wait_for_answer()
    server = server_of(home)

    client.leave()

    wait_for_exit(server)
    kill_hard(int(child))


def test_a_control_c_in_the_clients_terminal_does_not_reach_the_server(home):
    with EmbeddedPostgres(durable=False):
        assert os.getsid(server_of(home)) != os.getsid(0)


def test_linger_keeps_the_server_for_a_while(home):
    with EmbeddedPostgres(durable=False, linger=3):
        kept = server_of(home)
    left = time.monotonic()
    with EmbeddedPostgres():
        assert server_of(home) == kept

    wait_for_exit(kept)

    assert time.monotonic() - left >= 3


def test_a_share_can_be_released_twice(home):
    server = EmbeddedPostgres(durable=False).start()
    server.release()
    server.release()


@pytest.fixture
def server_without_trioboss(home, major, tmp_path):
    account = choose_account()
    sockets = tmp_path / "sockets"
    sockets.mkdir()
    account.chown(sockets)
    command = [find_binaries().folder / "postgres", "-D", home / f"pgdata-{major}", "-k", sockets, "-h", ""]
    with subprocess.Popen(
        [*account.prefix, *command], user=account.uid, stderr=subprocess.DEVNULL, cwd="/"
    ) as process:
        yield process
        process.send_signal(signal.SIGINT)


def test_a_server_started_without_trioboss_is_used_and_left_running(home, server_without_trioboss, major):
    wait_until((home / f"pgdata-{major}" / "postmaster.pid").exists)

    with EmbeddedPostgres() as server:
        assert query(server.dsn, "select 1") == 1

    wait_until(lambda: not reapers_of(home))
    assert servers_of(home) == [server_without_trioboss.pid]
