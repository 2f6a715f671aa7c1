"""Live pages: what is sent, and how often a page is read."""

import re
from contextlib import aclosing
from pathlib import Path

import pytest
import trio
from starlette.exceptions import HTTPException

import trioboss
from trioboss.dashboard import app as app_module
from trioboss.dashboard import make_app, pages
from trioboss.dashboard.live import LivePages

TEMPLATES = Path(trioboss.__file__).parent / "dashboard" / "templates"


@pytest.mark.parametrize("path", sorted(TEMPLATES.iterdir()), ids=lambda path: path.name)
def test_links_to_the_next_page_are_live_with_the_list_they_belong_to(path):
    """Else they would skip what has moved from this page to the next one."""
    text = path.read_text()
    live = re.findall(r"\{% block live_\w+ %\}.*?\{% endblock %\}", text, re.DOTALL)

    assert sum(part.count('class="pages"') for part in live) == text.count('class="pages"')


async def test_a_live_page_sends_what_has_changed_with_its_next_reading(dsn, sync_boss, monkeypatch):
    """Read by the application itself: httpx does not read streams of ASGI applications as they come."""
    sync_boss.create_queue("q")
    order = []

    async def load(dashboard, request):
        order.append("read")
        return await pages.overview(dashboard, request)

    monkeypatch.setitem(app_module._PAGES, "/", (load, "queues"))
    app = make_app(dsn)
    received: list[bytes] = []
    send_channel, receive_channel = trio.open_memory_channel[bytes](100)
    gone = trio.Event()

    async def receive():
        if not gone.is_set() and not received:
            received.append(b"")
            return {"type": "http.request", "body": b"", "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        if message["type"] == "http.response.body":
            await send_channel.send(message["body"])

    scope = {
        **{
            "type": "http",
            "method": "GET",
            "path": "/",
            "raw_path": b"/",
            "query_string": b"",
            "root_path": "",
        },
        **{"scheme": "http", "http_version": "1.1", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)},
        "headers": [(b"host", b"localhost"), (b"accept", b"text/event-stream")],
        "asgi": {"version": "3.0", "spec_version": "2.3"},
    }
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(app, scope, receive, send)
            text = ""
            while "live-queues" not in text:
                text += (await receive_channel.receive()).decode()
            assert app._live.viewers == 1
            sync_boss.send("q")
            order.append("sent")
            text = ""
            while "live-tiles" not in text:
                text += (await receive_channel.receive()).decode()
            gone.set()
        assert app._live.viewers == 0
    app._close()

    # Not even one, if a reading was under way and has seen it.
    assert order[order.index("sent") :].count("read") <= 1


@pytest.mark.parametrize("took", [0.0, 0.2], ids=["at once", "slowly"])
@pytest.mark.parametrize("changed", [3.0, 3.01, 3.5, 3.99])
async def test_a_change_is_sent_within_two_seconds_by_the_clock_of_the_readings(
    autojump_clock, took, changed
):
    """However it falls between two of them, the next one has it. The benchmark `dashboard` measures real seconds."""

    async def load():
        value = str(trio.current_time() - begun >= changed)
        await trio.sleep(took)
        return {"live-x": value}

    begun, seen = trio.current_time(), None
    async with aclosing(LivePages().follow("/", load)) as stream:
        async for message in stream:
            if "True" in message:
                seen = trio.current_time() - begun
                break

    assert seen is not None
    assert changed <= seen < changed + 2


async def test_a_page_is_read_once_a_second_whatever_the_number_of_people(autojump_clock):
    reads = []

    async def load():
        reads.append(trio.current_time())
        return {"live-x": str(len(reads) // 3)}

    async def follow(counts):
        stream = live.follow("/", load)
        async with aclosing(stream):
            async for message in stream:
                counts.append(message)

    live, received = LivePages(), [[] for _ in range(20)]
    with trio.move_on_after(10.5):
        async with trio.open_nursery() as nursery:
            for counts in received:
                nursery.start_soon(follow, counts)
    await trio.sleep(100)  # nobody has the page open

    assert len(reads) == 11
    assert {len([message for message in counts if message.startswith("data:")]) for counts in received} == {4}
    assert live.viewers == 0


async def test_a_live_page_goes_on_when_the_database_answers_again(autojump_clock):
    answers = [{"live-x": "1"}, trioboss.DatabaseUnavailable("cut"), {"live-x": "2"}]

    async def load():
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    received = []
    with trio.move_on_after(6):
        async with aclosing(LivePages().follow("/", load)) as stream:
            async for message in stream:
                received += message.split("\n")[:1]

    assert received == [
        "retry: 2000",
        'data: {"live-x": "1"}',
        "event: database-error",
        'data: {"live-x": "2"}',
    ]


async def test_a_live_page_ends_when_its_job_is_deleted(autojump_clock):
    answers = [{"live-x": "1"}, HTTPException(404, "There is no job 7.")]

    async def load():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    live = LivePages()
    async with aclosing(live.follow("/", load)) as stream:
        received = [message async for message in stream]

    assert received[-1] == 'event: gone\ndata: "There is no job 7."\n\n'
    assert live.viewers == 0


async def test_a_page_that_takes_long_is_read_less_often(autojump_clock):
    """So that looking at much data costs at most a fifth of a core."""
    begun = []

    async def load():
        begun.append(trio.current_time())
        await trio.sleep(2)
        return {"live-x": str(len(begun))}

    with trio.move_on_after(39):
        async with aclosing(LivePages().follow("/", load)) as stream:
            async for _ in stream:
                pass

    assert [round(time - begun[0]) for time in begun] == [0, 10, 20, 30]


async def test_a_failure_is_one_for_all_who_have_the_page_open(autojump_clock):
    """A statement that takes too long is not executed once more for each of them."""
    reads = []

    async def load():
        reads.append(trio.current_time())
        await trio.sleep(2)
        raise trioboss.DatabaseUnavailable("too slow")

    async def follow(received):
        async with aclosing(live.follow("/", load)) as stream:
            async for message in stream:
                received.append(message)

    live, received = LivePages(), [[] for _ in range(20)]
    with trio.move_on_after(19):
        async with trio.open_nursery() as nursery:
            for messages in received:
                nursery.start_soon(follow, messages)

    assert len(reads) == 2
    assert all("event: database-error\ndata: {}\n\n" in messages for messages in received)


async def test_many_different_pages_are_read_less_often(autojump_clock):
    reads = []

    async def load():
        reads.append(trio.current_time())
        return {}

    async def follow(address):
        async with aclosing(live.follow(address, load)) as stream:
            async for _ in stream:
                pass

    live = LivePages()
    with trio.move_on_after(100):
        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(follow, f"/{number}")

    assert 0.9 * 500 <= len(reads) <= 1.2 * 500  # five a second


async def test_a_page_that_is_live_has_room_for_others_although_no_other_page_has(
    autojump_clock, monkeypatch
):
    async def load():
        return {"live-x": "1"}

    async def follow(address):
        async with aclosing(live.follow(address, load)) as stream:
            async for _ in stream:
                pass

    monkeypatch.setattr("trioboss.dashboard.live._MOST_PAGES", 2)
    live = LivePages()
    async with trio.open_nursery() as nursery:
        assert live.has_room_for("/a")
        for address in ("/a", "/b"):
            nursery.start_soon(follow, address)
        await trio.sleep(1)
        assert live.has_room_for("/a")
        assert not live.has_room_for("/c")
        nursery.cancel_scope.cancel()
    assert live.has_room_for("/c")


async def test_a_stream_ends_when_uvicorn_was_told_to_stop(autojump_clock, monkeypatch):
    """With a real server: test_servers.py."""

    class Server:
        @property
        def should_exit(self):
            return trio.current_time() > begun + 10

        def handle_exit(self, number, frame): ...

    async def load():
        return {"live-x": "1"}

    monkeypatch.setattr("signal.getsignal", lambda number: Server().handle_exit)
    begun = trio.current_time()
    async with aclosing(LivePages().follow("/", load)) as stream:
        async for _ in stream:
            pass

    assert 10 <= trio.current_time() - begun <= 13


async def test_a_stream_ends_so_that_the_browser_is_authorized_again(autojump_clock):
    async def load():
        return {"live-x": "1"}

    begun = trio.current_time()
    async with aclosing(LivePages().follow("/", load)) as stream:
        received = [message async for message in stream]

    assert received[:2] == ["retry: 2000\n\n", 'data: {"live-x": "1"}\n\n']
    assert 300 <= trio.current_time() - begun <= 310  # of the clock of the test
