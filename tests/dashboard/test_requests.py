"""Requests to the dashboard: every page, its filters and its addresses."""

import re

import psycopg
import pytest
from page_paths import PAGES
from rendered import table_of, text_of

from trioboss.dashboard.filters import LAST_ID
from trioboss.dashboard.formatting import count


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


async def test_a_job_is_found_by_the_end_of_its_id_as_pages_show_it(reading, filled):
    for state in ("failed", "active"):
        (job,) = filled.find_jobs("q", state=state)
        id = str(job.id)
        for text in (id[-12:], f"…{id[-12:]}", f"{id[:8]}…{id[-12:]}", f"{id[:8]}...{id[-12:].upper()}"):
            page = (await reading.get("/queues/q/jobs", params={"text": text})).text
            assert re.findall(r'title="([0-9a-f-]{36})"', page) == [id], text


async def test_a_job_of_any_queue_is_found_by_its_id_alone(open_dashboard, filled):
    filled.create_queue("a/b")
    async with open_dashboard(prefix="/ops") as client:
        for queue, part in (("q", "q"), ("a/b", "a~b")):
            id = filled.find_jobs("q", state="failed")[0].id if queue == "q" else filled.send(queue)
            response = await client.get("/", params={"text": f" {str(id).upper()} "})
            assert response.status_code == 303
            assert response.headers["location"] == f"/ops/queues/{part}/jobs/{id}"
        missing = await client.get(f"/?text={LAST_ID}")

    assert missing.status_code == 200
    assert "no job has it as its id" in missing.text


async def test_the_failures_of_yesterday_are_found(reading, dsn, sync_boss):
    sync_boss.create_queue("q", retry_limit=0)
    ids = [sync_boss.send("q") for _ in range(3)]
    sync_boss.fail("q", sync_boss.fetch("q", batch_size=3), ValueError("x"))
    with psycopg.connect(dsn, autocommit=True) as connection:
        for id, days in zip(ids, (0, 1, 2), strict=True):  # at noon, UTC
            connection.execute(
                "update trioboss.archive set completed_on = "
                "(date_trunc('day', now() at time zone 'UTC') + interval '12 h') at time zone 'UTC' "
                "- %s * interval '1 d' where id = %s",
                [days, id],
            )
    page = (await reading.get("/queues/q/jobs?state=failed&error=ValueError")).text
    link = re.search(r'href="([^"]+)"[^>]*>yesterday<', page)[1].replace("&amp;", "&")
    assert "state=failed&error=ValueError" in link
    shown = (await reading.get(link)).text
    assert re.findall(r'title="([0-9a-f-]{36})"', shown) == [str(ids[1])]
    chip = re.search(r'href="([^"]+)"[^>]*>cancelled<', shown)[1].replace("&amp;", "&")

    assert "error=ValueError" in chip
    assert "since=" in chip


async def test_totals_of_counts_that_stopped_say_so(reading, dsn, sync_boss):
    for name in ("a", "b"):
        sync_boss.create_queue(name)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "insert into trioboss.live_job (queue, readiness) "
            "select 'a', 'ready' from generate_series(1, 1500) union all "
            "select 'b', 'ready'::trioboss.readiness from generate_series(1, 7)"
        )
        connection.execute(
            "insert into trioboss.live_job (queue, readiness, start_after) values ('b', 'deferred', now() + '1 h')"
        )
    text = " ".join(re.sub(r"<[^>]+>", " ", (await reading.get("/")).text).split())

    assert "Ready 1,007+ could run now" in text
    assert "Waiting 0 1 deferred" in text
    assert "Totals of the queues below" not in text
    assert "Totals of the queues below" in (await reading.get("/?text=b")).text


async def test_a_page_without_a_script_shows_results_and_its_time_zone(acting, filled):
    text = (await acting.get("/queues/q/jobs?done=run-now:1:2")).text
    assert '<div id="done" role="status">Run now: 1 of 2 jobs changed</div>' in text
    assert "refresh" not in text  # it would undo a selection
    assert '<span class="zone">UTC</span>' in text
    assert "refresh" in (await acting.get("/queues/q")).text
    hostile = (await acting.get("/queues/q?done=<b>:1:2")).text
    assert '<div id="done" role="status" hidden></div>' in hostile


async def test_times_of_an_explanation_and_of_the_audit_are_those_of_the_page(acting, filled):
    (job,) = filled.find_jobs("q", state="failed")
    page = (await acting.get(f"/queues/q/jobs/{job.id}")).text
    assert re.search(r'It failed at <time datetime="[^"]+"', page)
    form = {"queue": "q", "action": "priority", "priority": "7", "counted_on": "2026-01-01T12:00:00+00:00"}
    await acting.post("/act/jobs", data=form)
    await acting.post("/act/jobs", data={"queue": "q", "action": "retry", "id": str(job.id)})
    rows = (await acting.get("/audit")).text

    assert '<time datetime="2026-01-01T12:00:00+00:00"' in rows
    assert "new priority=7" in rows
    assert f'href="/queues/q/jobs/{job.id}"' in rows


async def test_redrive_is_offered_where_dead_letters_are_or_may_come(acting, sync_boss):
    sync_boss.create_queue("dead")
    sync_boss.create_queue("q", dead_letter="dead", retry_limit=0)
    offered = {name: "Redrive" in (await acting.get(f"/queues/{name}")).text for name in ("dead", "q")}

    assert offered == {"dead": True, "q": False}


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


async def test_all_keys_are_on_the_pages_and_blocked_ones_are_called_so(reading, dsn, sync_boss):
    """60 blocked keys, of which 30 have jobs that wait, and 5 others: more blocked ones than fit on a page."""
    sync_boss.create_queue("q", policy="key_strict_fifo")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "insert into trioboss.live_job (queue, readiness, attempt, key, backlog, owner) "
            "select 'q', 'ended', 1, k, 'key:' || k, 'key:' || k from generate_series(1, 60) n, concat('b', n) k"
        )
        connection.execute(
            "insert into trioboss.live_job (queue, readiness, key, backlog) "
            "select 'q', 'waiting'::trioboss.readiness, k, 'key:' || k from generate_series(1, 30) n, concat('b', n) k "
            "union all select 'q', 'waiting', k, 'key:' || k from generate_series(1, 5) n, concat('a', n) k"
        )
    seen, path = [], "/queues/q/keys"
    while path:
        text = (await reading.get(path)).text
        rows = [row.split()[:2] for row in table_of(text, "live-keys")]
        assert rows  # no page is empty
        seen += rows
        more = re.search(r'href="([^"]+)">More keys<', text)
        path = more and more[1].replace("&amp;", "&")

    blocked = [[f"b{n}", "blocked"] for n in range(1, 61)]
    assert seen == sorted(blocked) + [[f"a{n}", "free"] for n in range(1, 6)]


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
        ("/events?kind=odd", 400),
        ("/elsewhere", 404),
    ],
)
async def test_a_wrong_address_is_explained(reading, filled, path, status):
    response = await reading.get(path)

    assert response.status_code == status
    assert "Traceback" not in response.text
    assert response.headers["content-security-policy"]


async def test_a_database_without_the_schema_is_explained(open_dashboard, empty_dsn):
    async with open_dashboard(dsn=empty_dsn) as client:
        response = await client.get("/")

    assert response.status_code == 503
    assert "schema" in response.text


async def test_a_job_shows_its_attempts_with_waits_its_dead_letter_and_its_source(reading, sync_boss):
    sync_boss.create_queue("dead")
    sync_boss.create_queue("q", retry_limit=1, dead_letter="dead")
    id = sync_boss.send("q")
    for error in (OSError("first"), ValueError("second")):
        sync_boss.fail("q", sync_boss.fetch("q"), error)
    (letter,) = sync_boss.find_jobs("dead")
    text = (await reading.get(f"/queues/q/jobs/{id}")).text
    timeline = " ".join(re.sub(r"<[^>]+>", " ", text[text.index("<h3>Timeline") :]).split())

    assert re.search(r"Attempt 1 failed .* waited [\d.]+ \S+ OSError first", timeline)
    assert re.search(r"Attempt 2 failed .* waited [\d.]+ \S+ ValueError second", timeline)
    assert f'href="/queues/dead/jobs/{letter.id}"' in text
    assert f'href="/queues/q/jobs/{id}"' in (await reading.get(f"/queues/dead/jobs/{letter.id}")).text


WORKER = (
    "insert into trioboss.worker (id, boss, name, queue, lock, info) "
    "values (%s, gen_random_uuid(), 'w', 'q', %s, '{\"slots\": 1}')"
)


async def test_the_page_of_a_job_leads_to_the_workers_that_it_waits_for(reading, dsn, sync_boss):
    sync_boss.create_queue("q")
    id = sync_boss.send("q")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(WORKER, [LAST_ID, 4711])
        page = (await reading.get(f"/queues/q/jobs/{id}")).text
        assert "Its worker is not connected" in page
        assert 'href="/workers?queue=q">See its workers</a>' in page
        connection.execute("select pg_advisory_lock_shared(4711)")
        sync_boss.fetch("q")
        connection.execute("update trioboss.live_job set worker = %s", [LAST_ID])
        waiting = sync_boss.send("q")
        page = (await reading.get(f"/queues/q/jobs/{waiting}")).text
        assert "The one slot of its workers is busy" in page
        assert 'href="/workers?queue=q">See its workers</a>' in page
    page = (await reading.get(f"/queues/q/jobs/{id}")).text

    assert "which is not connected (last sign at <time" in page
    assert page.count(f'href="/workers?worker={LAST_ID}"') == 2  # beside the reason, and in the timeline


async def test_links_beside_a_reason_are_words_of_their_own(reading, sync_boss):
    sync_boss.create_queue("q", policy="key_strict_fifo")
    sync_boss.send("q", singleton_key="k")
    id = sync_boss.send("q", singleton_key="k")
    page = (await reading.get(f"/queues/q/jobs/{id}")).text

    assert re.search(r">See that job</a>\s+<a [^>]*>See its key<", page)


# -- keys


async def key_page(client, **params):
    page = (await client.get("/queues/q/key", params={"key": "k"} | params)).text
    return page, text_of(page[page.index('id="live-key"') :])


async def test_a_key_whose_owner_waits_for_its_retry_says_until_when_and_offers_to_run_it(acting, sync_boss):
    sync_boss.create_queue("q", policy="key_strict_fifo", retry_limit=1, retry_delay=3600)
    first = sync_boss.send("q", singleton_key="k")
    sync_boss.send("q", singleton_key="k")
    sync_boss.fail("q", sync_boss.fetch("q"), ConnectionError("the remote is down"))
    due = sync_boss.get_job_by_id("q", first).start_after
    page, text = await key_page(acting)

    assert f"…{str(first)[-12:]} goes first: it failed with ConnectionError and is tried again at" in text
    assert "the remote is down" in text
    assert page.count(f'datetime="{due.isoformat()}" data-style="age"') == 1
    assert 'class="primary">Run now</button>' in page
    assert f"action=delete&amp;id={first}" in page


@pytest.mark.parametrize(
    ("paused", "reason", "link"),
    [(True, "its queue is paused", "/queues/q"), (False, "no worker takes jobs", "/workers?queue=q")],
)
async def test_a_free_key_says_why_its_first_job_does_not_run(reading, sync_boss, paused, reason, link):
    sync_boss.create_queue("q", policy="key_strict_fifo")
    if paused:
        sync_boss.pause("q")
    first = sync_boss.send("q", singleton_key="k")
    page, text = await key_page(reading)

    assert f"The key is free, and job {str(first)[:8]}…{str(first)[-12:]} goes first: {reason}" in text
    assert f'href="{link}">See' in page
    assert ("Paused No worker takes jobs" in text_of((await reading.get("/queues/q/keys")).text)) == paused


async def test_a_key_whose_owner_runs_says_with_whom(reading, sync_boss):
    sync_boss.create_queue("q", policy="key_strict_fifo")
    sync_boss.send("q", singleton_key="k")
    sync_boss.fetch("q")

    assert "goes first: it has been running since" in (await key_page(reading))[1]


def test_counts_stop_where_it_would_take_long_to_go_on():
    assert [count(number) for number in (10_000, 10_001)] == ["10,000", "more than 10,000"]
