"""People who have pages of a dashboard open: so many event streams, in threads of one process."""

import http.client
import threading
import time
from urllib.parse import urlsplit

from benchmarks.programs.protocol import emit, handle_commands, read_spec


def _read(url: str, path: str, received: list[int], index: int) -> None:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.request("GET", path, headers={"Accept": "text/event-stream"})
    response = connection.getresponse()
    while line := response.readline():
        received[index] += line.startswith(b"data:")


def main() -> None:
    """Open the streams, and report how many messages they have received."""
    spec = read_spec()
    received, paths = [0] * spec["readers"], spec["paths"]
    for index in range(spec["readers"]):
        given = (spec["url"], paths[index % len(paths)], received, index)
        threading.Thread(target=_read, args=given, daemon=True).start()
    while not all(received):
        time.sleep(0.05)
    emit("ready")
    handle_commands(lambda _: emit("received", messages=sum(received)))
    threading.Event().wait()


if __name__ == "__main__":
    main()
