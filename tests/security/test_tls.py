"""TLS settings of the dsn reach every connection, and `doctor` says what came of them."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import psycopg
import pytest
import trio
from psycopg.conninfo import make_conninfo

import trioboss
from trioboss.cli import main
from trioboss.cli.findings import check_encryption
from trioboss.testing import temporary_server

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl, to make certificates, is not installed"
)


def make_certificate(folder, name):
    """A self-signed certificate for localhost, and its key."""
    key, certificate = folder / f"{name}.key", folder / f"{name}.crt"
    subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost "
        f"-keyout {key} -out {certificate}".split(),
        check=True,
        capture_output=True,
    )
    key.chmod(0o600)
    return key, certificate


def find_postgres_with_tls():
    """The folder of a Postgres that was built with TLS; the ones from wheels are not."""
    for folder in sorted(Path("/").glob("usr/lib/postgresql/*/bin"), reverse=True):
        if b"openssl" in subprocess.run([folder / "pg_config", "--configure"], capture_output=True).stdout:
            return folder
    return None


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory):
    """A server that speaks TLS, by the name of localhost; its certificate; and one that is not its own."""
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = make_certificate(folder, "server")
    _, stranger = make_certificate(folder, "stranger")
    if (binaries := find_postgres_with_tls()) is None:
        pytest.skip("no Postgres with TLS is installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIOBOSS_PG_BIN", str(binaries))
        with temporary_server(tcp=True) as server:
            owner = server.data.stat()
            for file in (key, certificate):
                os.chown(shutil.copy(file, server.data), owner.st_uid, owner.st_gid)
            with psycopg.connect(server.dsn, autocommit=True) as connection:
                connection.execute("alter system set ssl_cert_file = 'server.crt'")
                connection.execute("alter system set ssl_key_file = 'server.key'")
                connection.execute("alter system set ssl = on")
                connection.execute("select pg_reload_conf()")
            yield make_conninfo(server.dsn, host="localhost", hostaddr="127.0.0.1"), certificate, stranger


def read_finding(dsn, capsys):
    """The findings of `doctor` about encryption."""
    main(["doctor", "--dsn", dsn, "--json"])
    return next(f for f in json.loads(capsys.readouterr().out) if f["check"] == "encryption")


def test_an_encrypted_connection_is_shown_as_such(encrypted, capsys):
    dsn, certificate, _ = encrypted
    dsn = make_conninfo(dsn, sslmode="verify-full", sslrootcert=str(certificate))
    with trioboss.SyncBoss(dsn):
        pass

    finding = read_finding(dsn, capsys)
    assert finding["status"] == "ok"
    assert finding["text"].startswith("encrypted with TLSv1.")


async def test_every_connection_of_a_boss_is_encrypted(encrypted):
    dsn, certificate, _ = encrypted
    dsn = make_conninfo(
        dsn, sslmode="verify-full", sslrootcert=str(certificate), ssl_min_protocol_version="TLSv1.3"
    )
    with trio.fail_after(30):
        async with trioboss.open_boss(dsn) as boss:
            await boss.wait_listening()
            async with boss.transaction() as conn:
                rows = await (
                    await conn.execute(
                        "select ssl, version from pg_stat_ssl join pg_stat_activity using (pid) "
                        "where application_name = 'trioboss'"
                    )
                ).fetchall()

    assert len(rows) >= 2
    assert set(rows) == {(True, "TLSv1.3")}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"sslmode": "verify-full", "sslrootcert": "stranger"}, "certificate"),
        ({"sslmode": "verify-full", "sslrootcert": "own", "host": "elsewhere"}, "elsewhere"),
        ({"sslmode": "require", "ssl_max_protocol_version": "TLSv1.1"}, "(?i)ssl|tls|protocol"),
    ],
)
def test_a_server_that_is_not_who_it_should_be_is_refused(encrypted, settings, reason):
    dsn, certificate, stranger = encrypted
    files = {"own": certificate, "stranger": stranger}
    settings = {name: str(files.get(value, value)) for name, value in settings.items()}
    with (
        pytest.raises(trioboss.TriobossError, match=reason),
        trioboss.SyncBoss(make_conninfo(dsn, **settings)),
    ):
        pass


def test_a_server_without_tls_is_refused_where_tls_is_required():
    with (
        temporary_server(tcp=True) as server,
        pytest.raises(trioboss.TriobossError, match="SSL"),
        trioboss.SyncBoss(make_conninfo(server.dsn, host="127.0.0.1", sslmode="require")),
    ):
        pass


def test_doctor_warns_of_a_plain_connection_to_another_machine():
    assert check_encryption(False, None, local=False).status == "warning"
    assert "verify-full" in check_encryption(False, None, local=False).advice
    assert check_encryption(False, None, local=True).status == "ok"
