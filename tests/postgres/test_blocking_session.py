"""A blocking session that is lost while it is being opened."""

import socket
import threading
from contextlib import closing, contextmanager

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from trioboss.errors import DatabaseUnavailable
from trioboss.postgres.blocking import open_blocking

READY = b"Z\x00\x00\x00\x05I"  # ReadyForQuery: the server has let us in


@contextmanager
def a_way_that_ends_after_the_login(dsn: str):
    """The dsn of a way to the server that is cut as soon as the session could begin its work."""
    found = conninfo_to_dict(dsn)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        client, _ = listener.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{found['host']}/.s.PGSQL.{found['port']}")
        with closing(client), closing(server):
            answer = b""
            while not answer.endswith(READY):
                server.sendall(client.recv(65536))
                client.sendall(answer := server.recv(65536))
            client.recv(65536)

    thread = threading.Thread(target=serve)
    thread.start()
    port = listener.getsockname()[1]
    with closing(listener):
        yield make_conninfo(dsn, host="127.0.0.1", port=port, sslmode="disable", gssencmode="disable")
        thread.join()


def test_a_server_lost_while_a_session_is_prepared_is_unavailable(server_dsn):
    with a_way_that_ends_after_the_login(server_dsn) as dsn, pytest.raises(DatabaseUnavailable):
        open_blocking(dsn)
