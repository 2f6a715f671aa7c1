"""A TCP proxy in front of Postgres that breaks connections on request.

It is the only proxy of this repository. It lives here, and not in `trioboss.testing`, because the tests may import
the benchmarks while the benchmarks must not import the tests, and because users of trioboss do not need it.

Faults are plain attributes of `Proxy`. They apply to all connections of the proxy, from the next piece of data on.
"""

import queue
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial

import attrs
import trio
from psycopg.conninfo import conninfo_to_dict, make_conninfo

__all__ = ["Proxy", "open_proxy", "run_proxy"]

# ReadyForQuery outside of a transaction: the server has committed all earlier statements.
_READY_OUTSIDE_TRANSACTION = b"Z\x00\x00\x00\x05I"
_CLOSED = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)


@attrs.define(eq=False)
class _Connection:
    """One client's connection and the one to the server that belongs to it."""

    client: trio.SocketStream
    server: trio.SocketStream
    port: int | None
    """The port that pg_stat_activity shows as client_port; None over a Unix socket."""
    silent: bool = False
    """Nothing passes any more, and the connection stays open: once data is lost, a TCP stream cannot go on."""
    unanswered: bool = False
    """The server gets what the client sends, but its replies are lost."""

    def close(self) -> None:
        for stream in (self.client, self.server):
            stream.socket.close()


@attrs.define(eq=False)
class Proxy:
    """Forwards bytes between clients and one server, with the faults that are switched on."""

    server: tuple[str, int] | str
    """A TCP address, or the path of a Unix socket."""
    dsn: str = ""
    """The dsn that leads through the proxy."""

    accepted: int = attrs.field(default=0, init=False)
    """How many connections were opened so far, refused ones included."""
    refusals: int = attrs.field(default=0, init=False)
    """The first connections, so many, are closed at once."""
    delay: float = attrs.field(default=0.0, init=False)
    """Seconds by which each piece of data is late."""
    silent: bool = attrs.field(default=False, init=False)
    """All data is dropped. A connection that lost data stays silent, also when this is False again."""
    silent_ports: set[int] = attrs.field(factory=set, init=False)
    """The same for single connections, named by the client_port that the server sees."""
    hold_open: bool = attrs.field(default=False, init=False)
    """The client's connection stays open when the server closes its own."""
    lost_commits: int = attrs.field(default=0, init=False)
    """So many replies that follow a commit are lost, each together with its connection."""
    lose_replies_to: bytes | None = attrs.field(default=None, init=False)
    """Once the client has sent these bytes, the server's replies on this connection are lost."""
    close_on_loss: bool = attrs.field(default=False, init=False)
    """`lose_replies_to` closes the connection instead of leaving it silent."""
    lost_replies: int = attrs.field(default=0, init=False)
    """How many pieces of data `lose_replies_to` has taken."""

    _connections: set[_Connection] = attrs.field(factory=set, init=False)

    def half_close(self, *, towards_client: bool) -> None:
        """Close one direction of all open connections, as if the sending side had finished."""
        for connection in list(self._connections):
            stream = connection.client if towards_client else connection.server
            with suppress(OSError):
                stream.socket.shutdown(socket.SHUT_WR)

    def close_silent(self) -> None:
        """Close the connections that lost data, so that both sides see their end."""
        for connection in list(self._connections):
            if connection.silent:
                connection.close()

    async def serve(self, client: trio.SocketStream) -> None:
        """Serve one connection until it ends."""
        self.accepted += 1
        if self.accepted <= self.refusals:
            return
        with suppress(*_CLOSED):
            connection = await self._connect(client)
            self._connections.add(connection)
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._forward, connection, connection.client, connection.server)
                    nursery.start_soon(self._forward, connection, connection.server, connection.client)
            finally:
                self._connections.discard(connection)
                connection.close()

    async def _connect(self, client: trio.SocketStream) -> _Connection:
        if isinstance(self.server, str):
            return _Connection(client, await trio.open_unix_socket(self.server), None)
        server = await trio.open_tcp_stream(*self.server)
        return _Connection(client, server, server.socket.getsockname()[1])

    async def _forward(
        self, connection: _Connection, source: trio.SocketStream, target: trio.SocketStream
    ) -> None:
        to_client = target is connection.client
        try:
            while data := await source.receive_some(65536):
                if self.delay:
                    await trio.sleep(self.delay)
                if self._passes(connection, data, to_client=to_client):
                    await target.send_all(data)
                elif to_client and self._breaks(connection, data):
                    connection.close()
                    return
            if not connection.silent and not (to_client and self.hold_open):
                await target.send_eof()
        except _CLOSED:
            if not connection.silent:
                connection.close()

    def _passes(self, connection: _Connection, data: bytes, *, to_client: bool) -> bool:
        """Update the state of the connection; return whether the data is forwarded."""
        connection.silent = connection.silent or self.silent or connection.port in self.silent_ports
        if not to_client and self.lose_replies_to is not None and self.lose_replies_to in data:
            connection.unanswered = True
        if not to_client:
            return not connection.silent
        return not (connection.silent or connection.unanswered or self._is_lost_commit(data))

    def _is_lost_commit(self, data: bytes) -> bool:
        return self.lost_commits > 0 and data.endswith(_READY_OUTSIDE_TRANSACTION)

    def _breaks(self, connection: _Connection, data: bytes) -> bool:
        """Count a reply that is not forwarded; return whether its connection is closed as well."""
        if connection.silent:
            return False
        if connection.unanswered:
            self.lost_replies += 1
            return self.close_on_loss
        self.lost_commits -= 1
        return True


@asynccontextmanager
async def open_proxy(dsn: str) -> AsyncIterator[Proxy]:
    """Run a proxy to the server of a dsn, on a port of 127.0.0.1, for the length of the block."""
    found = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    is_unix = found["host"].startswith("/")
    proxy = Proxy(
        f"{found['host']}/.s.PGSQL.{found['port']}" if is_unix else (found["host"], int(found["port"]))
    )
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, proxy.serve, 0, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        # The proxy reads what it forwards, so TLS would hide commits and markers from it.
        proxy.dsn = make_conninfo(dsn, host="127.0.0.1", port=port, sslmode="disable")
        yield proxy
        nursery.cancel_scope.cancel()


@contextmanager
def run_proxy(dsn: str) -> Iterator[Proxy]:
    """Run a proxy in a thread, for programs without trio. Its attributes may be set from any thread."""
    started: queue.SimpleQueue[tuple[Proxy, trio.CancelScope, trio.lowlevel.TrioToken]] = queue.SimpleQueue()

    async def serve() -> None:
        async with open_proxy(dsn) as proxy:
            with trio.CancelScope() as scope:
                started.put((proxy, scope, trio.lowlevel.current_trio_token()))
                await trio.sleep_forever()

    thread = threading.Thread(target=trio.run, args=(serve,), daemon=True)
    thread.start()
    proxy, scope, token = started.get(timeout=10)
    try:
        yield proxy
    finally:
        token.run_sync_soon(scope.cancel)
        thread.join()
