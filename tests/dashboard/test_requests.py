"""Requests to the dashboard: every page, who may see it, the headers, and what a hostile payload becomes."""

import base64
import datetime
import re
from contextlib import aclosing
from urllib.parse import parse_qsl

import httpx
import psycopg
import pytest
import trio
from psycopg.conninfo import make_conninfo
from starlette.applications import Starlette
from starlette.routing import Mount

import trioboss
from trioboss.dashboard import basic_auth, make_app
from trioboss.dashboard.database import Reader
from trioboss.dashboard.filters import JobFilter
from trioboss.dashboard.formatting import clean, show_json
from trioboss.dashboard.live import LivePages
from trioboss.dashboard.rendering import decode_queue, queue_address
from trioboss.sql.grants import grant_plans

PAGES = [
    "/",
    "/queues/q",
    "/queues/q?span=24h",
    "/queues/q/jobs",
    "/schedules",
    "/workers",
    "/warnings",
    "/pipeline",
    "/audit",
]


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_is_there_and_may_load_nothing_from_elsewhere(reading, filled, path):
    response = await reading.get(path)

    assert response.status_code == 200
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["cache-control"] == "no-store"
    assert not re.search(r"<script(?! src)|\sstyle=|\son\w+=|javascript:", response.text)


@pytest.mark.parametrize(
    "state", ["completed", "failed", "cancelled", "active", "ready", "deferred", "queued"]
)
async def test_jobs_are_listed_by_state_and_each_has_its_page(reading, filled, state):
    text = (await reading.get(f"/queues/q/jobs?state={state}")).text
    ids = re.findall(r'title="([0-9a-f-]{36})"', text)
    assert len(ids) == (2 if state == "queued" else 1)
    text = (await reading.get(f"/queues/q/jobs/{ids[0]}")).text

    if state == "failed":
        assert "ValueError" in text
        assert "it broke" in text
    if state == "ready":
        assert "No worker takes jobs of its queue" in text
    if state == "deferred":
        assert "It is deferred until" in text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("error=ValueError", 1),
        ("error=KeyError", 0),
        ("attempt=1", 4),
        ("since=1h", 6),
        ("until=2020-01-01T00:00", 0),
        ("key=nobody", 0),
    ],
)
async def test_jobs_are_filtered_by_the_address(reading, filled, query, found):
    text = (await reading.get(f"/queues/q/jobs?{query}")).text

    assert len(re.findall(r'title="[0-9a-f-]{36}"', text)) == found


async def test_a_job_is_found_by_the_beginning_of_its_id(reading, filled):
    (job,) = filled.find_jobs("q", state="failed")
    for length in (20, 36):
        text = (await reading.get(f"/queues/q/jobs?text={str(job.id)[:length]}")).text
        assert str(job.id) in text


async def test_a_long_list_has_pages_without_gaps(reading, sync_boss):
    sync_boss.create_queue("q")
    sent = sync_boss.insert("q", [{}] * 120, return_ids=True)
    sync_boss.complete("q", sync_boss.fetch("q", batch_size=60))
    seen, path = [], "/queues/q/jobs"
    while path:
        text = (await reading.get(path)).text
        seen += re.findall(r'title="([0-9a-f-]{36})"', text)
        older = re.search(r'href="([^"]+)">Older<', text)
        path = older and older[1].replace("&amp;", "&")

    assert seen == sorted(map(str, sent), reverse=True)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/queues/nobody", 404),
        ("/queues/a b", 404),
        ("/queues/q/jobs/no-id", 404),
        ("/queues/q/jobs/01920000-0000-7000-8000-000000000001", 404),
        ("/queues/q/keys", 404),
        ("/queues/q/jobs?state=odd", 400),
        ("/queues/q/jobs?since=never", 400),
        ("/queues/q/jobs?attempt=x", 400),
        ("/queues/q/jobs?text=%3Cscript%3E", 400),
        ("/queues/q/jobs?before=x", 400),
        ("/queues/q?span=1y", 400),
        ("/elsewhere", 404),
    ],
)
async def test_a_wrong_address_is_explained(reading, filled, path, status):
    response = await reading.get(path)

    assert response.status_code == status
    assert "Traceback" not in response.text
    assert response.headers["content-security-policy"]


async def test_a_database_without_the_schema_is_explained(empty_dsn):
    app = make_app(empty_dsn)
    transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        response = await client.get("/")
    app._close()

    assert response.status_code == 503
    assert "schema" in response.text


async def test_schedules_show_the_ticks_that_were_fired_and_those_that_were_missed(reading, dsn, sync_boss):
    sync_boss.create_queue("q")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "insert into trioboss.schedule (queue, key, cron, updated_on) "
            "values ('q', 'k', '0 * * * *', now() - interval '1 day'), ('q', 'odd', 'not cron', now())"
        )
        connection.execute(
            "insert into trioboss.tick (queue, key, due, fired_on, job_id) "
            "select 'q', 'k', d, d + interval '3 s', case when n = 3 then gen_random_uuid() end "
            "from generate_series(3, 5, 2) n, lateral (select date_trunc('hour', now()) - n * interval '1 h' as d) t"
        )
    text = (await reading.get("/schedules")).text

    assert text.count('<li class="fired">') == 2
    assert text.count('<li class="missed">') in (3, 4)  # the last one may be of this minute
    assert "+3 s" in text
    assert "not cron" in text


# -- who may see it


@pytest.mark.parametrize(
    ("client", "headers"),
    [
        ("192.0.2.7", {}),
        ("127.0.0.1", {"Host": "evil.example"}),
        ("127.0.0.1", {"X-Forwarded-For": "192.0.2.7"}),
        ("127.0.0.1", {"Forwarded": "for=192.0.2.7"}),
    ],
)
async def test_without_authorize_only_this_machine_is_answered(open_dashboard, filled, client, headers):
    async with open_dashboard(client=(client, 1)) as connection:
        assert (await connection.get("/", headers=headers)).status_code == 403


def _basic(text: bytes) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(text).decode()}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (_basic("ann:sésame".encode()), 200),
        (_basic(b"ann:wrong"), 401),
        (_basic(b"bob:"), 401),
        (_basic(b"ann"), 401),
        ({"Authorization": "Basic ???"}, 401),
        ({"Authorization": "Bearer x"}, 401),
        ({}, 401),
    ],
)
async def test_basic_authorization(open_dashboard, filled, headers, status):
    authorize = basic_auth({"ann": "sésame"})
    async with open_dashboard(client=("192.0.2.7", 1), authorize=authorize) as connection:
        response = await connection.get("/", headers=headers)

    assert response.status_code == status
    assert ("www-authenticate" in response.headers) == (status == 401)


async def test_an_authorize_of_ones_own_may_be_async(open_dashboard, filled):
    async def authorize(request):
        return request.headers.get("x-user")

    async with open_dashboard(client=("192.0.2.7", 1), authorize=authorize) as connection:
        assert (await connection.get("/", headers={"X-User": "ann"})).status_code == 200
        assert (await connection.get("/")).status_code == 403
        assert (await connection.get("/", headers={"Accept": "text/event-stream"})).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"},
    ],
)
async def test_a_change_from_another_site_is_refused(open_dashboard, filled, dsn, headers):
    async with open_dashboard(act_dsn=dsn) as connection:
        response = await connection.post(
            "/act/queue", data={"queue": "q", "action": "pause"}, headers=headers
        )

    assert response.status_code == 403
    assert not filled.get_queue("q").paused


async def test_a_dashboard_that_only_reads_refuses_all_actions(reading, filled):
    reading.headers["Origin"] = "http://localhost"
    for path in ("/act/jobs", "/act/queue", "/act/schedule", "/act/redrive", "/act/send"):
        assert (await reading.post(path, data={"queue": "q", "action": "pause"})).status_code == 403
    text = (await reading.get("/queues/q")).text
    assert "Pause queue" not in text
    assert "read only" in text


# -- hostile data

HOSTILE = {
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "direction": "user\u202egpj.exe\u2066",
    "large": 2**63 + 1,
    "nul": "a\u0001b",
}


async def test_hostile_data_is_shown_as_data(reading, sync_boss):
    sync_boss.create_queue("q", policy="singleton")
    id = sync_boss.send("q", HOSTILE, singleton_key="<b>key</b>\u202e")
    text = (await reading.get(f"/queues/q/jobs/{id}")).text

    assert "<script>alert" not in text
    assert "<b>key" not in text
    assert "\u202e" not in text
    assert r"\u202e" in text
    assert str(2**63 + 1) in text
    assert "<b>key" not in (await reading.get("/queues/q/keys")).text
    assert "<b>key" not in (await reading.get("/queues/q/jobs")).text


async def test_large_data_is_cut_off(reading, sync_boss):
    sync_boss.create_queue("q")
    id = sync_boss.send("q", {"text": "x" * 1_000_000})
    text = (await reading.get(f"/queues/q/jobs/{id}")).text

    assert len(text) < 130_000
    assert "more characters" in text


async def test_fields_are_hidden_in_data_outputs_and_errors(open_dashboard, sync_boss):
    sync_boss.create_queue("q", retry_limit=0)
    ids = [sync_boss.send("q", {"user": {"Password": "hunter2", "name": "ann"}}) for _ in range(2)]
    first, second = sync_boss.fetch("q", batch_size=2)
    sync_boss.complete("q", first, [{"token": "hunter2"}])
    sync_boss.fail("q", second, ValueError("hunter2"))
    async with open_dashboard(redact={"password", "token", "message", "stack"}) as client:
        pages = [await client.get(f"/queues/q/jobs/{id}") for id in ids]
        pages += [await client.get("/queues/q/jobs"), await client.get("/queues/q")]

    assert not [page for page in pages if "hunter2" in page.text]
    assert "ann" in pages[0].text


async def test_a_function_decides_what_is_shown(open_dashboard, sync_boss):
    sync_boss.create_queue("q")
    id = sync_boss.send("q", {"secret": 1})
    async with open_dashboard(redact=lambda queue, value: {"of": queue} if value else value) as client:
        text = (await client.get(f"/queues/q/jobs/{id}")).text

    assert "secret" not in text
    assert "&#34;of&#34;: &#34;q&#34;" in text


def test_text_is_cleaned_of_what_would_change_how_it_reads():
    assert clean("a\u202eb\u0000c\u2028d\te\nf é 漢 🎉") == r"a\u202eb\u0000c\u2028d" + "\te\nf é 漢 🎉"
    assert show_json({"n": 12345678901234567890}) == '{\n  "n": 12345678901234567890\n}'


@pytest.mark.parametrize("name", ["q", "a/b", "a/jobs", "/", ".", "..", "...", "a.b", "-", "_"])
def test_every_name_of_a_queue_has_an_address_of_its_own(name):
    address = queue_address("", name, "jobs")

    assert decode_queue(address.split("/")[2].replace("%21", "!")) == name
    assert address.count("/") == 3


def test_a_filter_is_the_same_in_its_address():
    now = datetime.datetime.now(datetime.UTC)
    filter = JobFilter.parse(
        {"state": "failed", "key": "ü & ö", "since": "2h", "attempt": "3", "text": "01-9A"}, now
    )

    assert JobFilter.parse(dict(parse_qsl(filter.query())), now) == filter


# -- live


async def test_a_live_page_sends_what_has_changed_and_then_nothing(dsn, sync_boss):
    """Read by the application itself: httpx does not read streams of ASGI applications as they come."""
    sync_boss.create_queue("q")
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
            assert app._live.readers == 1
            sync_boss.send("q")
            text = ""
            while "live-tiles" not in text:
                text += (await receive_channel.receive()).decode()
            gone.set()
        assert app._live.readers == 0
    app._close()


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

    assert len(reads) == 11
    assert {len([message for message in counts if message.startswith("data:")]) for counts in received} == {4}
    assert live.readers == 0


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

    assert received == ["retry: 2000", 'data: {"live-x": "1"}', "event: trouble", 'data: {"live-x": "2"}']


# -- elsewhere


async def test_it_is_mounted_in_another_application(dsn, filled):
    inner = make_app(dsn)
    app = Starlette(routes=[Mount("/ops/queue", inner)])
    transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        text = (await client.get("/ops/queue/")).text
        assert 'href="/ops/queue/queues/q"' in text
        assert (await client.get("/ops/queue/queues/q")).status_code == 200
        assert (await client.get("/ops/queue/static/dashboard.css")).status_code == 200
    inner._close()


@pytest.mark.parametrize("path", ["/jobs/", "/jobs", "/"])
async def test_a_prefix_is_in_all_links_whether_the_server_takes_it_off_or_not(open_dashboard, filled, path):
    async with open_dashboard(prefix="/jobs/") as client:
        text = (await client.get(path)).text

    assert 'href="/jobs/queues/q"' in text
    assert 'src="/jobs/static/dashboard.js"' in text


async def test_it_reads_with_the_rights_of_a_reader(dsn, filled, open_dashboard):
    role = "dashboard_reader"
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute(f"drop role if exists {role}")
        owner.execute(f"create role {role} login")
        owner.execute(grant_plans("trioboss", {"reader": role}).encode())
    try:
        app = make_app(make_conninfo(dsn, user=role))
        transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 1))
        (job,) = filled.find_jobs("q", state="failed")
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for path in [*PAGES, f"/queues/q/jobs/{job.id}", "/queues/q/redrive"]:
                assert (await client.get(path)).status_code == 200, path
        app._close()
    finally:
        with psycopg.connect(dsn, autocommit=True) as owner:
            owner.execute(f"drop owned by {role}")
            owner.execute(f"drop role {role}")


async def test_a_statement_that_takes_too_long_is_cut_off_and_explained(reading, filled, dsn):
    await reading.get("/")
    with psycopg.connect(dsn) as connection:
        connection.execute("lock table trioboss.schedule in access exclusive mode")
        response = await reading.get("/schedules")

    assert response.status_code == 503
    assert "statement timeout" in response.text


async def test_it_can_change_nothing_by_reading(dsn, filled):
    reader = Reader(dsn, "trioboss")
    with pytest.raises(Exception, match="read-only"):
        await reader.read(lambda store: store.queues.pause("q", True))
    reader.close()
    assert isinstance(filled.get_queue("q"), trioboss.Queue)
