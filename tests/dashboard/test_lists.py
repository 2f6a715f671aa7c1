"""Lists of jobs: searches that read little, and what they show of each job."""

import html
import re
import secrets

import psycopg

from trioboss.dashboard import queries


async def test_a_search_by_error_reads_so_much_at_a_time_and_finds_all(reading, sync_boss, monkeypatch):
    """The stacks of jobs that wait for their retry are read only as far as it does not take long."""
    monkeypatch.setattr(queries, "_NOTES", 1_000)
    sync_boss.create_queue("q", retry_limit=1, retry_delay=3600)
    ids = sync_boss.insert("q", [{}] * 30, return_ids=True)
    for number, job in enumerate(sync_boss.fetch("q", batch_size=30)):
        sync_boss.fail("q", job, KeyError("x") if number in (3, 17) else ValueError("x"))
    seen, pages, path = [], 0, "/queues/q/jobs?error=KeyError"
    while path:
        text = (await reading.get(path)).text
        seen += re.findall(r'title="([0-9a-f-]{36})"', text)
        older = re.search(r'href="([^"]+)">Search older jobs<', text)
        path, pages = older and older[1].replace("&amp;", "&"), pages + 1

    assert seen == [str(ids[17]), str(ids[3])]
    assert pages > 3
    assert re.search(
        r"None among the newest \d+ jobs that were searched",
        (await reading.get("/queues/q/jobs?error=OSError")).text,
    )


async def test_jobs_that_block_their_key_are_found_by_when_they_failed(reading, dsn, sync_boss):
    sync_boss.create_queue("q", policy="key_strict_fifo", retry_limit=0)
    id = sync_boss.send("q", singleton_key="k")
    sync_boss.fail("q", sync_boss.fetch("q"), ValueError("x"))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("update trioboss.live_job set created_on = now() - interval '3 d'")

    for query, found in {
        "since=1h": 1,
        "until=1h": 0,
        "since=1h&error=ValueError": 1,
        "error=OSError": 0,
    }.items():
        text = (await reading.get(f"/queues/q/jobs?state=failed&{query}")).text
        assert re.findall(r'title="([0-9a-f-]{36})"', text) == [str(id)] * found, query


async def test_a_cancelled_job_is_found_by_the_error_that_it_had(reading, sync_boss):
    sync_boss.create_queue("q", retry_limit=1, retry_delay=3600)
    id = sync_boss.send("q")
    sync_boss.fail("q", sync_boss.fetch("q"), ValueError("x"))
    sync_boss.cancel("q", id)

    for query, found in {
        "error=ValueError": 1,
        "state=failed&error=ValueError": 0,
        "error=OSError": 0,
    }.items():
        text = (await reading.get(f"/queues/q/jobs?{query}")).text
        assert len(re.findall(r'title="[0-9a-f-]{36}"', text)) == found, query


async def test_a_list_shows_the_beginning_of_small_data_as_far_as_it_may_be_seen(open_dashboard, sync_boss):
    sync_boss.create_queue("q")
    for data in (
        {"to": "ann", "token": "hunter2", "n": 2**64},
        {"rows": ["x" * 10] * 50},
        {"big": secrets.token_hex(5_000)},
    ):
        sync_boss.send("q", data)
    sync_boss.complete("q", sync_boss.fetch("q"))
    async with open_dashboard(redact={"token"}) as client:
        text = (await client.get("/queues/q/jobs")).text
    shown = [html.unescape(each) for each in re.findall(r'<div class="excerpt">(.*?)</div>', text)]

    assert len(shown) == 2
    assert shown[1] == '{"n": 18446744073709551616, "to": "ann", "token": "•••"}'
    assert shown[0].startswith('{"rows": ["xxxxxxxxxx", ')
    assert shown[0].endswith("…")
    assert len(shown[0]) <= 161
