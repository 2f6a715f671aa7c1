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


async def test_the_overview_counts_up_to_ten_thousand_and_then_says_more_than(reading, dsn, sync_boss):
    sync_boss.create_queue("a")
    sync_boss.create_queue("b")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "insert into trioboss.live_job (queue, readiness) "
            "select 'a', 'ready' from generate_series(1, 10001) union all "
            "select 'b', 'ready'::trioboss.readiness from generate_series(1, 1001)"
        )
        connection.execute(
            "insert into trioboss.live_job (queue, readiness, start_after) values ('b', 'deferred', now() + '1 h')"
        )
    page = (await reading.get("/")).text
    rows = table_of(page, "live-queues")

    assert "Ready more than 11,001 could run now" in text_of(page)
    assert "Waiting 0 1 deferred" in text_of(page)
    assert "out more than 10,000 0 0 0" in rows[0]
    assert "out 1,001 0 0 1" in rows[1]
    assert "Totals of the queues below" not in text_of(page)
    assert "Totals of the queues below" in (await reading.get("/?text=b")).text
    assert "more than 10,000" in text_of((await reading.get("/queues/a")).text)


async def test_only_ten_queues_of_the_overview_are_counted_beyond_a_thousand(reading, dsn, sync_boss):
    names = [f"q{number:02}" for number in range(12)]
    for name in names:
        sync_boss.create_queue(name)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "insert into trioboss.live_job (queue, readiness) select name, 'ready' "
            "from unnest(%s::text[]) name, generate_series(1, 1001)",
            [names],
        )
    page = (await reading.get("/")).text
    shown = [re.search("out (.*?) 0 0 0", row)[1] for row in table_of(page, "live-queues")]

    assert shown == ["1,001"] * 10 + ["more than 1,000"] * 2
    assert "Ready more than 12,010 could run now" in text_of(page)


async def test_a_page_without_a_script_shows_results_and_its_time_zone(acting, filled):
    text = (await acting.get("/queues/q/jobs?done=run-now:1:2")).text
    assert '<div id="done" role="status">Run now: 1 of 2 jobs changed</div>' in text
    assert 'http-equiv="refresh"' in text
    selecting = (await acting.get("/queues/q/jobs?select=1")).text
    assert 'http-equiv="refresh"' not in selecting  # it would undo a selection
    assert '<span class="zone">UTC</span>' in text
    assert "refresh" in (await acting.get("/queues/q")).text
    hostile = (await acting.get("/queues/q?done=<b>:1:2")).text
    assert '<div id="done" role="status" hidden></div>' in hostile


async def test_times_of_an_explanation_and_of_the_audit_are_those_of_the_page(acting, filled):
    (job,) = filled.find_jobs("q", state="failed")
    page = (await acting.get(f"/queues/q/jobs/{job.id}")).text
    assert re.search(r'It failed at <time datetime="[^"]+"', page)
    form = {
        "queue": "q",
        "action": "priority",
        "priority": "7",
        "counted_on": "2026-01-01T12:00:00+00:00",
        "committed": "9:9:",
    }
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
        ("/queues/q/jobs?text=--", 400),
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


def timeline_of(page):
    start = page.index("<h2>Timeline")
    return text_of(page[start : page.index("</section>", start)])


async def test_an_attempt_shows_the_wait_from_its_due_time_where_that_is_known(reading, dsn, sync_boss):
    """A job has one due time: that of its last attempt, or of the next one if it waits for a retry."""
    sync_boss.create_queue("q", retry_limit=3, retry_delay=3600)
    id = sync_boss.send("q")
    with psycopg.connect(dsn, autocommit=True) as connection:
        back = "update trioboss.live_job set created_on = now() - interval '2 h', start_after = now() - %s::interval"
        connection.execute(back, ["90 s"])
        sync_boss.fail("q", sync_boss.fetch("q"), OSError("first"))
        timeline = timeline_of((await reading.get(f"/queues/q/jobs/{id}")).text)
        assert re.search(r"Attempt 1 failed [^A]* 2 h after it was sent", timeline)
        assert "waited" not in timeline
        connection.execute("update trioboss.live_job set readiness = 'ready'")
        connection.execute(back, ["300 s"])
        sync_boss.fetch("q")
    page = (await reading.get(f"/queues/q/jobs/{id}")).text

    assert timeline_of(page).count("waited") == 1
    assert re.search(r"Attempt 2 active [^A]* after attempt 1, waited 5(\.\d+)? min", timeline_of(page))
    assert re.search(r"Waited 5(\.\d+)? min after it was due", text_of(page))


async def test_a_job_of_many_attempts_shows_the_last_hundred_and_says_so(reading, dsn, sync_boss):
    sync_boss.create_queue("q")
    id = sync_boss.send("q")
    attempt = (
        "insert into trioboss.attempt (queue, job_id, attempt, started_on, ended_on, outcome) "
        "select 'q', %s, n, now(), now(), 'failed' from generate_series(%s::int, %s) n"
    )
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(attempt, [id, 1, 100])
        assert "Earlier attempts" not in (await reading.get(f"/queues/q/jobs/{id}")).text
        connection.execute(attempt, [id, 101, 130])
    timeline = timeline_of((await reading.get(f"/queues/q/jobs/{id}")).text)

    assert re.findall(r"Attempt (\d+)", timeline) == [str(n) for n in range(31, 131)]
    assert "Earlier attempts are not shown: this list has the last hundred" in timeline


async def test_a_job_shows_its_attempts_its_dead_letter_and_its_source(reading, sync_boss):
    sync_boss.create_queue("dead")
    sync_boss.create_queue("q", retry_limit=1, dead_letter="dead")
    id = sync_boss.send("q")
    for error in (OSError("first"), ValueError("second")):
        sync_boss.fail("q", sync_boss.fetch("q"), error)
    (dead_letter,) = sync_boss.find_jobs("dead")
    text = (await reading.get(f"/queues/q/jobs/{id}")).text
    timeline = timeline_of(text)

    assert re.search(r"Attempt 1 failed .* OSError first", timeline)
    assert re.search(r"Attempt 2 failed .* ValueError second", timeline)
    assert f'href="/queues/dead/jobs/{dead_letter.id}"' in text
    assert f'href="/queues/q/jobs/{id}"' in (await reading.get(f"/queues/dead/jobs/{dead_letter.id}")).text


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
        # Unlocked in so many words: a server frees the locks of a closed connection some time after the close.
        connection.execute("select pg_advisory_unlock_shared(4711)")
    page = (await reading.get(f"/queues/q/jobs/{id}")).text

    assert "which is not connected (last sign at <time" in page
    assert page.count(f'href="/workers?worker={LAST_ID}"') == 2  # beside the reason, and in the timeline


async def test_a_queue_with_jobs_and_without_a_worker_says_so(reading, dsn, sync_boss):
    sync_boss.create_queue("dead")
    sync_boss.create_queue("q", dead_letter="dead", retry_limit=0)
    warning = "No connected worker takes jobs of this queue"
    assert warning not in (await reading.get("/queues/q")).text  # it has no jobs
    for _ in range(2):
        sync_boss.send("q")
    sync_boss.fail("q", sync_boss.fetch("q"), ValueError("dead"))
    assert warning in (await reading.get("/queues/q")).text
    assert "No worker is connected" in (await reading.get("/")).text
    assert warning not in (await reading.get("/queues/dead")).text  # dead letters wait for a person
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(WORKER, [LAST_ID, 4711])
        assert warning in (await reading.get("/queues/q")).text
        connection.execute("select pg_advisory_lock_shared(4711)")
        assert warning not in (await reading.get("/queues/q")).text
        assert "No worker is connected" not in (await reading.get("/")).text
        connection.execute("select pg_advisory_unlock_shared(4711)")


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


async def test_a_blocked_key_says_how_many_jobs_wait_and_when_the_last_attempt_began(reading, sync_boss):
    """So that a person sees that a retry was made and failed again, and how the backlog goes down afterwards."""
    sync_boss.create_queue("q", policy="key_strict_fifo", retry_limit=0)
    sync_boss.insert("q", [{"singleton_key": "k"}] * 141)
    for attempt in (1, 2):
        failed = sync_boss.fetch("q")
        sync_boss.fail("q", failed, ValueError("again"))
        text = text_of((await reading.get("/queues/q/key?key=k")).text)
        assert "failed, and 140 jobs wait behind it" in text
        assert re.search(rf"Attempt {attempt} started \d+ \w+ [\d:]+ \. To unblock", text)
        assert "Backlog 140 jobs" in text
        assert "The first hundred" in text
        sync_boss.retry("q", failed[0].id)


def test_counts_stop_where_it_would_take_long_to_go_on():
    assert [count(number) for number in (10_000, 10_001)] == ["10,000", "more than 10,000"]
