"""The filter of a list of jobs: what it finds, and its address."""

import re

import psycopg
import pytest

from trioboss.dashboard.filters import LAST_ID


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


async def test_a_time_ago_stays_one_in_the_links_to_other_lists(reading, filled):
    text = (await reading.get("/queues/q/jobs?since=1h&until=today")).text

    (query,) = re.findall(r'href="/queues/q/jobs\?([^"]*state=failed[^"]*)"', text)
    assert {"since=1h", "until=today"} < set(query.split("&amp;"))
    assert re.search(
        r'since=1h"[^>]* aria-current="true">last hour',
        (await reading.get("/queues/q/jobs?since=1h&state=failed")).text,
    )


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


async def test_a_job_is_found_by_any_text_in_its_id(reading, filled):
    for state in ("failed", "active"):
        (job,) = filled.find_jobs("q", state=state)
        id = str(job.id)
        for text in (
            id[16:26],
            id[20:33].upper(),
            id[16:26].replace("-", ""),
            id[-9:],
            id[:3] + "…" + id[-7:],
        ):
            page = (await reading.get("/queues/q/jobs", params={"text": text})).text
            assert re.findall(r'title="([0-9a-f-]{36})"', page) == [id], text
    nothing = (await reading.get("/queues/q/jobs", params={"text": "0123456789abcdef0"})).text
    assert "No job matches" in nothing


async def test_an_id_that_is_no_uuid7_is_found_by_its_beginning(reading, sync_boss):
    sync_boss.create_queue("q")
    id = "f3b0c442-98fc-4c14-9afb-f4c8996fb924"
    sync_boss.send("q", id=id)
    for text in (id[:12], id):
        assert id in (await reading.get("/queues/q/jobs", params={"text": text})).text


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
