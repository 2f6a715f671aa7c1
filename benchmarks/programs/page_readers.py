"""People who have the overview of a dashboard open: so many event streams, in threads of one process."""

import http.client
import threading
import time
from urllib.parse import urlsplit

from benchmarks.programs.protocol import emit, handle_commands, read_spec


def _read(url: str, received: list[int], index: int) -> None:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.request("GET", "/", headers={"Accept": "text/event-stream"})
    response = connection.getresponse()
    while response.readline():
        received[index] += 1


def main() -> None:
    """Open the streams, and report how much they have received."""
    spec = read_spec()
    received = [0] * spec["readers"]
    for index in range(spec["readers"]):
        threading.Thread(target=_read, args=(spec["url"], received, index), daemon=True).start()
    while not all(received):
        time.sleep(0.05)
    emit("ready")
    handle_commands(lambda _: emit("received", lines=sum(received)))
    threading.Event().wait()


if __name__ == "__main__":
    main()
