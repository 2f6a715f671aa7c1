"""The rights to see the dashboard and to act, and the rights of the role that reads."""

import base64

import psycopg
import pytest
from database_roles import new_role
from page_paths import PAGES
from psycopg.conninfo import make_conninfo

import trioboss
from trioboss.dashboard import basic_auth
from trioboss.dashboard.database import Reader


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
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
    ],
)
async def test_a_change_from_another_site_is_refused(open_dashboard, filled, dsn, headers):
    async with open_dashboard(act_dsn=dsn) as connection:
        response = await connection.post(
            "/act/queue", data={"queue": "q", "action": "pause"}, headers=headers
        )

    assert response.status_code == 403
    assert not filled.get_queue("q").paused


async def test_a_change_is_accepted_behind_a_proxy_that_changes_the_host(open_dashboard, filled, dsn):
    headers = {"Sec-Fetch-Site": "same-origin", "Origin": "https://ops.example", "Host": "localhost"}
    async with open_dashboard(act_dsn=dsn) as connection:
        response = await connection.post(
            "/act/queue", data={"queue": "q", "action": "pause"}, headers=headers
        )

    assert response.status_code == 303
    assert filled.get_queue("q").paused


async def test_buttons_that_the_role_may_not_use_are_hidden_and_refused(dsn, filled, open_dashboard):
    with psycopg.connect(dsn, autocommit=True) as owner, new_role(owner, "worker") as role:
        async with open_dashboard(act_dsn=make_conninfo(dsn, user=role)) as client:
            client.headers["Origin"] = "http://localhost"
            page = (await client.get("/queues/q")).text
            jobs = (await client.get("/queues/q/jobs")).text
            response = await client.post("/act/queue", data={"queue": "q", "action": "pause"})

    assert "Pause queue" not in page
    assert "Send a job" in page
    assert 'value="retry"' in jobs
    assert response.status_code == 403
    assert "The role of act_dsn may not do this" in response.text


async def test_a_role_that_only_reads_has_no_buttons(dsn, filled, open_dashboard):
    with psycopg.connect(dsn, autocommit=True) as owner, new_role(owner, "reader") as role:
        async with open_dashboard(act_dsn=make_conninfo(dsn, user=role)) as client:
            pages = [(await client.get(path)).text for path in ("/queues/q", "/queues/q/jobs", "/schedules")]

    assert not [page for page in pages if 'method="post"' in page or 'name="action"' in page]


async def test_a_dashboard_that_only_reads_refuses_all_actions(reading, filled):
    reading.headers["Origin"] = "http://localhost"
    for path in ("/act/jobs", "/act/queue", "/act/schedule", "/act/redrive", "/act/send"):
        assert (await reading.post(path, data={"queue": "q", "action": "pause"})).status_code == 403
    text = (await reading.get("/queues/q")).text
    assert "Pause queue" not in text
    assert "read only" in text


async def test_it_reads_with_the_rights_of_a_reader(dsn, filled, open_dashboard):
    with psycopg.connect(dsn, autocommit=True) as owner, new_role(owner, "reader") as role:
        (job,) = filled.find_jobs("q", state="failed")
        async with open_dashboard(dsn=make_conninfo(dsn, user=role)) as client:
            for path in [*PAGES, f"/queues/q/jobs/{job.id}", "/queues/q/redrive"]:
                assert (await client.get(path)).status_code == 200, path
            assert (await client.get(f"/?text={job.id}")).status_code == 303


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
