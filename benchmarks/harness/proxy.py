"""A TCP proxy whose connections can go silent without being closed: a cable pulled, a firewall that forgot."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import attrs
from psycopg.conninfo import conninfo_to_dict

__all__ = ["Proxy", "open_proxy"]


@attrs.define(eq=False)
class Proxy:
    """Passes bytes on between clients and one server."""

    server: tuple[str, int]
    _listener: socket.socket
    _silenced: set[int] = attrs.field(factory=set, init=False)
    _sockets: list[socket.socket] = attrs.field(factory=list, init=False)

    @property
    def port(self) -> int:
        """Where clients connect."""
        return int(self._listener.getsockname()[1])

    def silence(self, port: int) -> None:
        """From now on nothing passes through the connection that the server sees coming from this port."""
        self._silenced.add(port)

    def serve(self) -> None:
        """Accept connections until it is closed."""
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                upstream = socket.create_connection(self.server)
                self._sockets += [client, upstream]
                port = upstream.getsockname()[1]
                for source, target in ((client, upstream), (upstream, client)):
                    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=self._pass_on, args=(source, target, port), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, port: int) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if port not in self._silenced:
                    target.sendall(data)
            if port not in self._silenced:
                target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """End everything."""
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextlib.contextmanager
def open_proxy(dsn: str) -> Iterator[tuple[Proxy, str]]:
    """A proxy to the server of a dsn, and the dsn that goes through it."""
    found = conninfo_to_dict(dsn)
    listener = socket.create_server(("127.0.0.1", 0))
    proxy = Proxy((str(found["host"]), int(str(found["port"]))), listener)
    threading.Thread(target=proxy.serve, daemon=True).start()
    try:
        yield proxy, dsn.replace(f":{found['port']}/", f":{proxy.port}/")
    finally:
        proxy.close()
