"""What parses input ends with an answer or an error of ours, whatever the input is."""

import contextlib
import io
from datetime import UTC, datetime

import pytest
import trio
import trio.testing
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trioboss.cli import main
from trioboss.cli.health import _END, _MAX_BYTES, _MOST_CONNECTIONS, _read_target, _respond, serve_health
from trioboss.errors import UsageError
from trioboss.model.cron import Cron
from trioboss.model.schedule import check_cron, check_timezone


class NoMetrics:
    """Metrics of a boss that is ready."""

    def objection(self):
        return None

    async def lines(self):
        return ["trioboss_listening 1"]


REQUESTS = [
    b"GET /live HTTP/1.1\r\n\r\n",
    b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET  /live\r\n\r\n",
    b"GET /%2e%2e/../etc/passwd HTTP/1.1\r\n\r\n",
    b"POST /live HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET " + b"a" * 2 * _MAX_BYTES,
    b"\r\n\r\n",
    b"",
]
pieces = st.one_of(
    st.binary(max_size=50),
    st.sampled_from(
        [
            b"GET ",
            b"HEAD ",
            b"/live",
            b"/ready",
            b"/metrics",
            b" HTTP/1.1",
            b"\r\n",
            b"\r\n\r\n",
            b"?x=1",
            b"\0",
        ]
    ),
)


@given(st.lists(pieces, max_size=12))
@example([REQUESTS[6]])
@example([REQUESTS[5]])
def test_every_request_of_the_health_port_gets_one_response(parts):
    async def run():
        client, server = trio.testing.memory_stream_pair()
        async with trio.open_nursery() as nursery:

            async def send():
                for part in parts:
                    await client.send_all(part)
                await client.send_eof()

            nursery.start_soon(send)
            method, target = await _read_target(server)
            nursery.cancel_scope.cancel()
        assert method in ("", "GET", "HEAD")
        response = await _respond(NoMetrics(), target)
        head, _, body = response.partition(_END)
        assert head.startswith(b"HTTP/1.1 ")
        assert f"Content-Length: {len(body)}".encode() in head

    trio.run(run)


@pytest.mark.parametrize("request_", REQUESTS)
async def test_the_health_port_answers_a_corpus(request_):
    async with trio.open_nursery() as nursery:
        port = await nursery.start(serve_health, NoMetrics(), ("127.0.0.1", 0))
        with trio.fail_after(30):
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                await stream.send_all(request_)
                await stream.send_eof()
                with contextlib.suppress(trio.BrokenResourceError):  # more was sent than it reads
                    answer = b"".join([chunk async for chunk in stream])
                    assert answer.startswith(b"HTTP/1.1 ")
                    if request_.startswith(b"HEAD"):
                        assert answer.endswith(_END)
        nursery.cancel_scope.cancel()


async def test_the_health_port_has_a_limit_of_connections():
    """One more than there may be: one of them is closed at once, and the others get their answers."""
    answers = []

    async def ask(port):
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            opened.append(stream)
            with contextlib.suppress(trio.BrokenResourceError):
                answer = await stream.receive_some(4096)
                answers.append(answer)
                if not answer:
                    refused.set()

    opened, refused = [], trio.Event()
    with trio.fail_after(30):
        async with trio.open_nursery() as server:
            port = await server.start(serve_health, NoMetrics(), ("127.0.0.1", 0))
            async with trio.open_nursery() as nursery:
                for _ in range(_MOST_CONNECTIONS + 1):
                    nursery.start_soon(ask, port)
                await refused.wait()
                for stream in opened:
                    with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                        await stream.send_all(REQUESTS[0])
            server.cancel_scope.cancel()
    assert sum(answer.startswith(b"HTTP/1.1 200") for answer in answers) == _MOST_CONNECTIONS


cron_parts = st.one_of(
    st.text(max_size=8),
    st.from_regex(r"[0-9*/,\-LW#?]{1,8}", fullmatch=True),
    st.sampled_from(
        [
            "*",
            "*/5",
            "1-5",
            "0",
            "59",
            "60",
            "L",
            "MON",
            "JAN-DEC",
            "1#5",
            "@daily",
            "99999999999999999999",
            "1-0",
        ]
    ),
)


@given(
    st.lists(cron_parts, max_size=7).map(" ".join),
    st.sampled_from(["UTC", "Europe/Berlin", "Nowhere/City", "", "../../etc/passwd", "a\0b"]),
)
@example("0 0 31 2 *", "UTC")
@example("* * * * * * *", "UTC")
def test_every_cron_expression_is_refused_or_has_a_next_time(text, timezone):
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with contextlib.suppress(UsageError):
        assert Cron(check_cron(text), check_timezone(timezone)).next_after(now) > now


COMMANDS = [
    "worker",
    "queues",
    "jobs",
    "send",
    "migrate",
    "grants",
    "doctor",
    "pause",
    "retry",
    "cancel",
    "pipeline",
    "demo",
]
options = st.one_of(
    st.text(max_size=10),
    st.sampled_from(
        [
            "--dsn",
            "--schema",
            "--help",
            "-q",
            "--health",
            "--grace",
            "--format",
            "-",
            "--no-such",
            "=",
            "%s",
            "\ud800",
        ]
    ),
)


@settings(max_examples=50)
@given(st.sampled_from(COMMANDS), st.lists(options, max_size=4))
@example("worker", ["--health", "x:y"])
@example("worker", ["--grace", "-1"])
def test_every_command_line_ends_with_a_code_and_no_traceback(command, arguments):
    out, err = io.StringIO(), io.StringIO()
    # An address where nobody listens, and no waiting for it: only the parsing is of interest.
    line = [command, "--dsn", "host=/nonexistent dbname=x connect_timeout=2", *arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.suppress(SystemExit):
        assert main([*line, "--no-such-option"]) == 2
    assert "Traceback" not in err.getvalue()
