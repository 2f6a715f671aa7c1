"""Every request to the dashboard gets a page, a redirect or a refusal, whatever its address and its form are."""

import httpx
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from security_helpers import read_corpus

import trioboss
from trioboss.dashboard import make_app
from trioboss.testing import temporary_database

ORIGIN = "http://localhost"
PAGES = ("jobs", "keys", "key", "confirm", "redrive", "send", "jobs/x", "")

values = st.one_of(
    st.sampled_from(["", "q", "\0", "%", "..", "<script>", "-1", "1e400", "99999999999999999999", "null"]),
    st.sampled_from(["failed", "queued", "cancel", "retry", "delete", "1h", "2026-11-17T08:00", "[1]", "{"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
names = st.sampled_from(
    [
        *("queue", "key", "state", "since", "until", "error", "attempt", "after", "before", "id", "action"),
        *("data", "options", "to", "source", "limit", "span", "kind", "page", "priority", "done", "text"),
        *("audit", "affected", "examined", "count", "counted_on", "committed", "cursor", "selected", "back"),
        *("after_blocked", "confirm"),
    ]
)
queries = st.dictionaries(names, values, max_size=4)
pages = st.one_of(
    st.tuples(st.sampled_from(["q", "missing", "\0", "a/b"]), st.sampled_from(PAGES)).map(
        lambda found: ("queues", *found)
    ),
    st.sampled_from([("schedules",), ("workers",), ("events",), ("pipeline",), ("audit",), ("static", "x")]),
    st.lists(values, max_size=3).map(tuple),
)
requests = st.one_of(
    st.tuples(st.sampled_from(["GET", "HEAD", "PUT"]), pages, queries),
    st.tuples(
        st.just("POST"),
        st.sampled_from(["jobs", "queue", "schedule", "redrive", "send"]).map(lambda act: ("act", act)),
        queries,
    ),
)


@pytest.fixture(scope="module")
def dashboard_dsn(server_dsn, template):
    """The dsn of a database that all examples share."""
    with temporary_database(server_dsn, template) as dsn:
        with trioboss.SyncBoss(dsn, migrate=False) as boss:
            boss.create_queue("q", retry_limit=0)
            boss.send("q", {"a": 1}, singleton_key="k")
            boss.fail("q", boss.fetch("q"), "broken")
            boss.send("q", {"a": 2})
        yield dsn


async def send_all(dsn, found):
    """Send requests to one dashboard that can act, as its own pages do."""
    app = make_app(dsn, act_dsn=dsn)
    transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 50000))
    try:
        async with httpx.AsyncClient(
            transport=transport, base_url=ORIGIN, headers={"Origin": ORIGIN}
        ) as client:
            for method, url, form in found:
                await check(client, method, url, form)
    finally:
        app._close()


async def check(client, method, url, form):
    with trio.fail_after(60):
        response = await client.request(method, url, data=form if method == "POST" else None)
    assert response.status_code < 500, (method, url, form, response.text)
    assert "Traceback" not in response.text
    assert response.headers["content-security-policy"].startswith("default-src 'none'; ")


def address(parts, query):
    path = "/" + "/".join(httpx.URL("/", params={"x": part}).query.decode()[2:] for part in parts)
    return str(httpx.URL(path.replace("+", "%20"), params=query))


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(requests, min_size=1, max_size=8))
def test_every_request_gets_a_response(dashboard_dsn, found):
    parts = [
        (method, address(path, {} if method == "POST" else values), values) for method, path, values in found
    ]
    trio.run(send_all, dashboard_dsn, parts)


async def test_every_request_of_the_corpus_gets_a_response(dashboard_dsn):
    await send_all(dashboard_dsn, read_corpus("dashboard"))
