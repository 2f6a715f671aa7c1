"""Parsers of input return a value or raise an error of ours, whatever the input is.

The files of `corpus` have one example a line; an input that once failed is added there.
"""

import contextlib
from datetime import UTC, datetime

import pytest
import trio
import trio.testing
from hypothesis import example, given
from hypothesis import strategies as st
from security_helpers import corpus, read_corpus

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


REQUESTS = [text.encode("latin-1") for text in read_corpus("health")]
TOO_LONG = b"GET " + b"a" * 2 * _MAX_BYTES
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
@example([TOO_LONG])
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


@pytest.mark.parametrize("request_", [*REQUESTS, TOO_LONG])
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
    """One more than there may be: the oldest is closed at once, and the others get their answers."""
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
    with trio.fail_after(60):
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


async def test_silent_connections_do_not_keep_probes_out():
    """A probe restarts a worker that does not answer, so a connection that sends nothing gives way to a new one."""
    with trio.fail_after(60):
        async with trio.open_nursery() as server, contextlib.AsyncExitStack() as stack:
            port = await server.start(serve_health, NoMetrics(), ("127.0.0.1", 0))
            for number in range(3 * _MOST_CONNECTIONS):
                silent = await stack.enter_async_context(await trio.open_tcp_stream("127.0.0.1", port))
                if number % 2:
                    await silent.send_all(b"GET /live HTTP/1.1\r\nX-Slow: ")
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                await stream.send_all(REQUESTS[0])
                answer = b"".join([chunk async for chunk in stream])
            server.cancel_scope.cancel()
    assert answer.startswith(b"HTTP/1.1 200")


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
@corpus("cron")
def test_every_cron_expression_is_refused_or_has_a_next_time(text, timezone):
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with contextlib.suppress(UsageError):
        assert Cron(check_cron(text), check_timezone(timezone)).next_after(now) > now
