"""Probes and metrics over HTTP: /live, /ready and /metrics."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import attrs
import trio

from trioboss.api.boss import Boss
from trioboss.cli.database_metrics import DATABASE_METRICS, measure_database
from trioboss.errors import UsageError
from trioboss.events import JobCompleted, JobFailed

__all__ = ["Histogram", "Metrics", "parse_address", "serve_health"]

_MAX_BYTES = 8192  # of a request
_TIMEOUT = 5.0  # seconds for a request and its response
_MOST_CONNECTIONS = 32  # at the same time
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)
_COUNTERS = {
    "completed": "jobs completed",
    "failed": "attempts failed",
    "lost": "attempts whose lease was lost",
    "claimed": "jobs claimed",
    "claims": "claims sent to the database",
    "woken_by_notify": "wake-ups by a notification",
    "woken_by_timer": "wake-ups by a timer, for deferred jobs",
    "woken_by_poll": "wake-ups by a poll, after a missed notification or in polling mode",
}


@attrs.define
class Histogram:
    """How many values were below each bound, as Prometheus counts."""

    counts: list[int] = attrs.field(factory=lambda: [0] * len(_BOUNDS))
    total: float = 0.0
    number: int = 0

    def add(self, value: float) -> None:
        """Count a value."""
        self.number += 1
        self.total += value
        for index, bound in enumerate(_BOUNDS):
            if value <= bound:
                self.counts[index] += 1


@attrs.define(eq=False)
class Metrics:
    """The work of a boss, in the text format of Prometheus."""

    _boss: Boss
    _started: trio.Event = attrs.field(factory=trio.Event)
    _stopping: trio.Event = attrs.field(factory=trio.Event)
    _waited: dict[str, Histogram] = attrs.field(factory=dict, init=False)
    _ran: dict[str, Histogram] = attrs.field(factory=dict, init=False)

    async def run(self) -> None:
        """Collect the times of jobs from the stream of events."""
        async with self._boss.events(JobCompleted, JobFailed) as events:
            async for event in events:
                if isinstance(event, JobCompleted | JobFailed):
                    self._waited.setdefault(event.queue, Histogram()).add(event.waited)
                    self._ran.setdefault(event.queue, Histogram()).add(event.ran)

    def objection(self) -> str | None:
        """Why the worker is not ready; None if it is notified of jobs and claims them."""
        if self._stopping.is_set():
            return "stopping"
        if not self._started.is_set():
            return "starting"
        return None if self._boss.statistics().listener.listening else "not listening"

    async def lines(self) -> list[str]:
        """All metrics. Those of the database come from the worker that leads: they are the same for all."""
        lines = [*self._counts()]
        if self._boss.statistics().listener.leads:
            for name, values in (await measure_database(self._boss)).items():
                lines += _series(name, "gauge", DATABASE_METRICS[name], values)
        return lines

    def _counts(self) -> Iterator[str]:
        statistics = self._boss.statistics()
        listener = statistics.listener
        yield from _gauge(
            "trioboss_listening",
            "1 if the worker is notified of jobs; 0 in polling mode, and while it reconnects",
            listener.listening and not listener.polling,
        )
        yield from _gauge(
            "trioboss_polling",
            "1 if the worker is in polling mode: notifications do not arrive, as behind a transaction pooler",
            listener.polling,
        )
        yield from _gauge("trioboss_leads", "1 if this worker does maintenance for all", listener.leads)
        dispatchers = [d for worker in statistics.workers for d in worker.dispatchers]
        for name, text in _COUNTERS.items():
            counts = Counter({dispatcher.queue: 0 for dispatcher in dispatchers})
            for dispatcher in dispatchers:
                counts[dispatcher.queue] += getattr(dispatcher, name)
            yield from _series(f"trioboss_{name}_total", "counter", text, counts)
        running = Counter({worker.queue: 0 for worker in statistics.workers})
        for worker in statistics.workers:
            running[worker.queue] += worker.running
        yield from _series(
            "trioboss_running", "gauge", "jobs that are running, or leased and waiting for a slot", running
        )
        yield from _histograms(
            "trioboss_wait_seconds",
            "seconds from when a job was due until it started, those behind other jobs of its key included",
            self._waited,
        )
        yield from _histograms("trioboss_run_seconds", "seconds that the handler of a job took", self._ran)


def _series(name: str, kind: str, text: str, values: Mapping[str, float]) -> Iterator[str]:
    """One line for each queue: two workers of one queue are one series."""
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for queue, value in values.items():
        yield f'{name}{{queue="{queue}"}} {value}'


def _gauge(name: str, text: str, value: bool) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} gauge"
    yield f"{name} {int(value)}"


def _histograms(name: str, text: str, histograms: dict[str, Histogram]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} histogram"
    for queue, histogram in histograms.items():
        for bound, count in zip(_BOUNDS, histogram.counts, strict=True):
            yield f'{name}_bucket{{queue="{queue}",le="{bound:g}"}} {count}'
        yield f'{name}_bucket{{queue="{queue}",le="+Inf"}} {histogram.number}'
        yield f'{name}_sum{{queue="{queue}"}} {histogram.total:.6f}'
        yield f'{name}_count{{queue="{queue}"}} {histogram.number}'


def parse_address(text: str, field: str = "health") -> tuple[str, int]:
    """Parse `[HOST:]PORT`; without a host, only this machine can connect."""
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise UsageError(f"{field}: {text!r} is not [HOST:]PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


@attrs.define(eq=False)
class _Connections:
    """The open connections, of which there is a limit.

    Beyond it a new connection takes the place of the one that has been without a complete request for the longest. If
    new ones were refused instead, a few silent connections would keep the probes out, and a worker that is well would
    be restarted. A new one is refused only while the requests of all others are being answered.
    """

    _number: int = attrs.field(default=0, init=False)
    _unread: dict[trio.CancelScope, None] = attrs.field(factory=dict, init=False)
    """Those without a complete request, the oldest first."""

    @contextmanager
    def admit(self) -> Iterator[trio.CancelScope]:
        """Cancel the block at the time limit, when another connection takes its place, or at once if it has none."""
        scope = trio.CancelScope(deadline=trio.current_time() + _TIMEOUT)
        self._number += 1
        self._unread[scope] = None
        if self._number > _MOST_CONNECTIONS:
            oldest = next(iter(self._unread))
            del self._unread[oldest]
            oldest.cancel()
        try:
            with scope:
                yield scope
        finally:
            self._number -= 1
            self.note_request(scope)

    def note_request(self, scope: trio.CancelScope) -> None:
        """The request has arrived: the connection keeps its place."""
        self._unread.pop(scope, None)


async def serve_health(
    metrics: Metrics,
    address: tuple[str, int],
    *,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Answer requests until cancelled. Reports the port once it listens."""
    connections = _Connections()

    async def answer(stream: trio.SocketStream) -> None:
        async with stream:
            with connections.admit() as scope, suppress(trio.BrokenResourceError):
                method, target = await _read_target(stream)
                connections.note_request(scope)
                response = await _respond(metrics, target)
                # The answer to HEAD has the headers of GET, and no body.
                await stream.send_all(response.partition(_END)[0] + _END if method == "HEAD" else response)

    try:
        listeners = await trio.open_tcp_listeners(address[1], host=address[0])
    except OSError as error:
        raise UsageError(f"health: cannot listen on {address[0]}:{address[1]}: {error.strerror}") from None
    task_status.started(listeners[0].socket.getsockname()[1])
    await trio.serve_listeners(answer, listeners)


_END = b"\r\n\r\n"  # of the headers


async def _read_target(stream: trio.SocketStream) -> tuple[str, str]:
    """The method and the target of a request; an empty target for a method that nothing here answers."""
    received = b""
    while _END not in received and len(received) < _MAX_BYTES:
        chunk = await stream.receive_some(4096)
        if not chunk:
            break
        received += chunk
    method, _, rest = received.partition(b" ")
    target = rest.partition(b" ")[0].partition(b"?")[0]
    if method not in (b"GET", b"HEAD"):
        return "", ""
    return method.decode(), target.decode("ascii", "replace")


async def _respond(metrics: Metrics, target: str) -> bytes:
    if target == "/live":
        return _response("200 OK", "alive\n")
    if target == "/ready":
        objection = metrics.objection()
        return (
            _response("200 OK", "ready\n")
            if objection is None
            else _response("503 Service Unavailable", f"{objection}\n")
        )
    if target == "/metrics":
        return _response("200 OK", "\n".join(await metrics.lines()) + "\n")
    return _response("404 Not Found", "not found: try /live, /ready or /metrics\n")


def _response(status: str, text: str) -> bytes:
    body = text.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body
