"""People who have pages of a dashboard open: so many event streams, in threads of one process. They close and open them
on command.
"""

import http.client
import socket
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

from benchmarks.programs.protocol import Spec, emit, handle_commands, read_spec


class _Readers:
    """The streams that are open, and how many messages each person has received."""

    def __init__(self, spec: Spec) -> None:
        self.received = [0] * spec["readers"]
        self._url, self._paths = urlsplit(spec["url"]), spec["paths"]
        self._sockets: list[socket.socket] = []

    def open(self) -> None:
        """Open all pages, and wait until each has its first message."""
        before = list(self.received)
        for index in range(len(before)):
            connection = http.client.HTTPConnection(self._url.hostname or "", self._url.port, timeout=60)
            connection.connect()
            self._sockets.append(connection.sock)
            threading.Thread(target=self._read, args=(connection, index), daemon=True).start()
        while any(now == then for now, then in zip(self.received, before, strict=True)):
            time.sleep(0.02)

    def _read(self, connection: http.client.HTTPConnection, index: int) -> None:
        with suppress(OSError, http.client.HTTPException, ValueError, AttributeError):  # it was closed
            path = self._paths[index % len(self._paths)]
            connection.request("GET", path, headers={"Accept": "text/event-stream"})
            response = connection.getresponse()
            while line := response.readline():
                self.received[index] += line.startswith(b"data:")

    def close(self) -> None:
        """Close all pages."""
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()

    def obey(self, command: Spec) -> None:
        """Do what the harness says."""
        if command["do"] == "open":
            self.open()
            emit("opened")
        elif command["do"] == "close":
            self.close()
            emit("closed")
        else:
            emit("received", messages=sum(self.received))


def main() -> None:
    """Open the pages, unless they are to stay closed, and obey."""
    spec = read_spec()
    readers = _Readers(spec)
    if not spec.get("closed"):
        readers.open()
    emit("ready")
    handle_commands(readers.obey)
    threading.Event().wait()


if __name__ == "__main__":
    main()
