"""The page before an action: what is counted, what is asked, and what comes back from its form."""

import html
import re
from pathlib import Path
from urllib.parse import urlencode

import httpx
import psycopg
import pytest
from forms import hidden_fields
from rendered import text_of

import trioboss
from trioboss.dashboard import queries
from trioboss.dashboard.formatting import pack

TEMPLATES = Path(trioboss.__file__).parent / "dashboard" / "templates"
# Texts that a browser or a page may alter: an invisible joiner, line breaks, spaces at the ends, directions, markup.
HOSTILE = ["a\u200db", "a\nb", "a\r\nb", " a ", " ", "\u202eb", "a&b=c", '"><b>', "é漢", "\ttab"]


def insert_jobs(dsn, count, key=None):
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "insert into trioboss.live_job (queue, readiness, key) "
            "select 'q', 'ready', %s from generate_series(1, %s)",
            [key, count],
        )


async def follow_count(client, path):
    """Open a page, and count on as its script does; the texts of all pages."""
    pages = []
    while path:
        pages.append((await client.get(path)).text)
        more = re.search(r'href="([^"]+)" data-continue', pages[-1])
        path = more and html.unescape(more[1])
    return pages


async def act_on_all(client, page):
    """Press the button of a page, and go on as the script of the next pages does."""
    response = await client.post("/act/jobs", data=hidden_fields(page))
    while response.status_code == 200:
        response = await client.post("/act/jobs", data=hidden_fields(response.text))


# -- counting


async def test_jobs_behind_many_newer_ones_are_counted_before_anything_is_done(
    acting, dsn, sync_boss, monkeypatch
):
    monkeypatch.setattr(queries, "BUDGET", 20)
    sync_boss.create_queue("q")
    old = sync_boss.insert("q", [{"singleton_key": "old"}] * 5, return_ids=True)
    sync_boss.insert("q", [{"singleton_key": "new"}] * 90)
    pages = await follow_count(acting, "/queues/q/confirm?action=cancel&key=old")
    await act_on_all(acting, pages[-1])

    assert len(pages) == 5
    assert not [page for page in pages[:-1] if "<form" in page]
    assert "0 jobs so far, among the newest 20" in text_of(pages[0])
    assert "Cancel 5 jobs?" in text_of(pages[-1])
    assert {str(job.id) for job in sync_boss.find_jobs("q", state="cancelled")} == set(map(str, old))


async def test_jobs_that_come_while_others_are_counted_are_left_alone(acting, dsn, sync_boss, monkeypatch):
    monkeypatch.setattr(queries, "BUDGET", 20)
    sync_boss.create_queue("q")
    sync_boss.insert("q", [{"singleton_key": "k"}] * 30)
    first = (await acting.get("/queues/q/confirm?action=cancel&key=k")).text
    sync_boss.insert("q", [{"singleton_key": "k"}] * 3)
    on = html.unescape(re.search(r'href="([^"]+)" data-continue', first)[1])
    pages = await follow_count(acting, on)
    await act_on_all(acting, pages[-1])

    assert "Cancel 30 jobs?" in text_of(pages[-1])
    assert len(sync_boss.find_jobs("q", state="cancelled")) == 30


async def test_counting_ends_at_ten_thousand(acting, dsn, sync_boss):
    sync_boss.create_queue("q")
    insert_jobs(dsn, 10_050)
    (page,) = await follow_count(acting, "/queues/q/confirm?action=cancel")

    assert "Cancel more than 10,000 jobs?" in text_of(page)
    assert hidden_fields(page)["count"] == "10001"


# -- the first action, and what was typed wrong


@pytest.mark.parametrize(
    ("query", "heading"),
    [
        ("state=failed", "Retry 1 job?"),
        ("error=ValueError", "Retry 1 job?"),
        ("state=cancelled", "Resume 1 job?"),
        ("state=deferred", "Run now 1 job?"),
        ("state=queued", "Cancel 2 jobs?"),
        ("state=active", "Cancel 1 job?"),
        ("state=completed", "Delete 1 job?"),
        ("", "What should happen?"),
        ("key=k", "What should happen?"),
    ],
)
async def test_everything_that_a_filter_matches_opens_with_what_can_be_done_to_it(
    acting, filled, query, heading
):
    listed = (await acting.get(f"/queues/q/jobs?{query}")).text
    path = html.unescape(re.search(r'href="([^"]+)" data-all', listed)[1])
    page = (await acting.get(path)).text

    assert re.search(r"<h1>(.*?)</h1>", page)[1] == heading
    if heading == "What should happen?":
        choice = html.unescape(re.search(r'href="([^"]+)">Cancel<', page)[1])
        assert (await acting.get(choice)).text.count("<h1>Cancel ") == 1


async def test_a_priority_that_is_none_is_asked_for_again(acting, filled):
    page = (await acting.get("/queues/q/confirm?action=priority&state=queued")).text
    fields = hidden_fields(page)
    again = await acting.post("/act/jobs", data=fields | {"priority": "high"})

    assert again.status_code == 400
    assert "&#39;high&#39; is not a priority" in again.text
    assert 'name="priority" value="high"' in again.text
    assert hidden_fields(again.text) == fields  # nothing was counted again
    done = await acting.post("/act/jobs", data=hidden_fields(again.text) | {"priority": "4"})
    assert done.headers["location"].endswith("done=priority%3A2%3A2")


async def test_a_filter_that_is_wrong_is_shown_again(acting, filled):
    response = await acting.get("/queues/q/jobs?since=never&key=k")

    assert response.status_code == 400
    assert "&#39;never&#39; is not a time" in response.text
    assert 'name="since" value="never"' in response.text
    assert 'name="key" value="k"' in response.text
    assert "everything this filter matches" not in response.text


async def test_a_problem_leads_back_to_where_it_came_from(open_dashboard, filled, dsn):
    async with open_dashboard(act_dsn=dsn, prefix="/ops") as client:
        for referrer, back in (
            ("http://localhost/ops/queues/q/jobs?state=failed", "/ops/queues/q/jobs?state=failed"),
            ("http://evil.example/ops/queues/q", None),
            ("http://localhost/elsewhere", None),
            ("", None),
        ):
            headers = {"Referer": referrer} if referrer else {}
            page = (await client.get("/ops/queues/q/confirm?selected=1&action=retry", headers=headers)).text
            found = re.search(r'href="([^"]*)">Back<', page)
            assert (found and html.unescape(found[1])) == back


async def test_a_path_of_the_referrer_that_leads_elsewhere_is_no_way_back(reading, filled):
    page = await reading.get("/queues/nobody", headers={"Referer": "http://localhost//evil.example/"})

    assert "evil.example" not in page.text


# -- what comes back from a form


@pytest.mark.parametrize("key", HOSTILE, ids=ascii)
async def test_a_filter_comes_back_from_the_page_as_it_was(acting, sync_boss, key):
    sync_boss.create_queue("q")
    sync_boss.send("q", singleton_key=key)
    sync_boss.send("q", singleton_key="other")
    page = (await acting.get(f"/queues/q/confirm?{urlencode({'action': 'cancel', 'key': key})}")).text
    assert "Cancel 1 job?" in page
    packed = html.unescape(re.search(r'name="fields" value="([^"]*)"', page)[1])
    assert packed.isascii()
    assert "\n" not in packed
    response = await acting.post("/act/jobs", data={"fields": packed})

    assert "done=cancel%3A1%3A1" in response.headers["location"]
    assert [job.singleton_key for job in sync_boss.find_jobs("q", state="cancelled")] == [key]


@pytest.mark.parametrize("key", HOSTILE[:3], ids=ascii)
async def test_a_schedule_of_any_key_is_paused_and_run(acting, sync_boss, dsn, key):
    """Plain SQL can write keys that `schedule` refuses."""
    sync_boss.create_queue("q")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "insert into trioboss.schedule (queue, key, cron) values ('q', %s, '0 0 1 1 *')", [key]
        )
    for label, is_paused in (("Pause", True), ("Unpause", False)):
        page = (await acting.get("/schedules")).text
        form = next(each for each in re.findall(r"<form.*?</form>", page, re.DOTALL) if f">{label}<" in each)
        packed = html.unescape(re.search(r'name="fields" value="([^"]*)"', form)[1])
        assert (await acting.post("/act/schedule", data={"fields": packed})).status_code == 303
        with psycopg.connect(dsn) as connection:
            assert connection.execute("select paused from trioboss.schedule").fetchall() == [(is_paused,)]
    page = (await acting.get(f"/queues/q/schedule?{urlencode({'key': key})}")).text
    form = next(each for each in re.findall(r"<form.*?</form>", page, re.DOTALL) if ">Run now<" in each)
    packed = html.unescape(re.search(r'name="fields" value="([^"]*)"', form)[1])
    response = await acting.post("/act/schedule", data={"fields": packed})

    assert response.headers["location"].startswith("/queues/q/jobs/")


async def test_a_schedule_that_is_gone_is_explained_and_leaves_no_trace(acting, dsn, filled):
    for action in ("pause-schedule", "run-schedule"):
        fields = {"queue": "q", "key": "gone", "action": action}
        response = await acting.post("/act/schedule", data=fields)
        assert response.status_code == 404
    with psycopg.connect(dsn) as connection:
        assert connection.execute("select count(*) from trioboss.audit").fetchall() == [(0,)]


async def test_typed_values_win_over_packed_ones(acting: httpx.AsyncClient, filled):
    (job,) = filled.find_jobs("q", state="failed")
    fields = pack({"queue": "q", "action": "retry", "id": [str(job.id)], "back": "/queues/q"})
    response = await acting.post("/act/jobs", data={"fields": fields, "back": "/workers"})

    assert response.headers["location"] == "/workers?done=retry%3A1%3A1"


@pytest.mark.parametrize("path", sorted(TEMPLATES.iterdir()), ids=lambda path: path.name)
def test_no_template_cleans_the_value_of_a_field(path):
    """A value that comes back must be the one that was there: `raw` and `pack` keep it, everything else is cleaned."""
    values = re.findall(r'<(?:input|button|option)[^>]*?\svalue="\{\{(.*?)\}\}"', path.read_text())
    values += re.findall(r"<textarea[^>]*>\s*\{\{(.*?)\}\}", path.read_text())

    assert [each for each in values if not re.search(r"\| (raw|pack) $", each)] == []
