"""A network that delays, swallows, half-closes, and loses the answer to a commit. One link for each program."""

import contextlib
import socket
from functools import partial

import attrs
import trio

__all__ = ["Link", "open_link"]

_AT_REST = b"Z\x00\x00\x00\x05I"  # ReadyForQuery, outside of a transaction: what was asked is committed


@attrs.define(eq=False)
class _Wire:
    """One connection through a link."""

    client: trio.SocketStream
    server: trio.SocketStream
    dead: bool = False
    """Something was swallowed: nothing comes through any more, and nobody is told."""

    def cut(self) -> None:
        for stream in (self.client, self.server):
            stream.socket.close()


@attrs.define(eq=False)
class Link:
    """What lies between one program and the server."""

    server: tuple[str, int]
    port: int = 0
    delay: float = 0.0
    """Seconds by which each piece is late."""
    silent: bool = False
    """Everything is swallowed."""
    replies_to_lose: int = 0
    """So many answers to commits get lost, each with its connection."""
    _wires: set[_Wire] = attrs.field(factory=set, init=False)

    async def connect(self, client: trio.SocketStream) -> None:
        """Serve one connection."""
        with contextlib.suppress(OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            wire = _Wire(client, await trio.open_tcp_stream(*self.server))
            self._wires.add(wire)
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._pass_on, wire, wire.client, wire.server)
                    nursery.start_soon(self._pass_on, wire, wire.server, wire.client)
            finally:
                self._wires.discard(wire)
                wire.cut()

    async def _pass_on(self, wire: _Wire, source: trio.SocketStream, target: trio.SocketStream) -> None:
        try:
            while data := await source.receive_some(65536):
                if self.delay:
                    await trio.sleep(self.delay)
                if self._loses(wire, source, data):
                    wire.cut()
                    return
                wire.dead = wire.dead or self.silent
                if not wire.dead:
                    await target.send_all(data)
            if not wire.dead:
                await target.send_eof()
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
            if not wire.dead:
                wire.cut()

    def _loses(self, wire: _Wire, source: trio.SocketStream, data: bytes) -> bool:
        if source is wire.server and self.replies_to_lose > 0 and data.endswith(_AT_REST):
            self.replies_to_lose -= 1
            return True
        return False

    async def half_close(self, towards_client: bool) -> None:
        """On all connections there are: one side hears that the other will say nothing more."""
        for wire in list(self._wires):
            stream = wire.client if towards_client else wire.server
            with contextlib.suppress(OSError):
                stream.socket.shutdown(socket.SHUT_WR)

    def cut_dead(self) -> None:
        """Whoever waits on a connection that swallowed something is told at last."""
        for wire in list(self._wires):
            if wire.dead:
                wire.cut()


async def open_link(nursery: trio.Nursery, server: tuple[str, int]) -> Link:
    """A link that is served in the nursery."""
    link = Link(server)
    listeners = await nursery.start(partial(trio.serve_tcp, link.connect, 0, host="127.0.0.1"))
    link.port = listeners[0].socket.getsockname()[1]
    return link
