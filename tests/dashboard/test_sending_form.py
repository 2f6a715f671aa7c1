"""The form that sends a job: what it takes, and what it refuses."""

from datetime import datetime
from decimal import Decimal

import psycopg
import pytest


async def test_a_job_is_sent(acting, sync_boss):
    sync_boss.create_queue("a/b", policy="key_strict_fifo")
    fields = {"queue": "a/b", "data": '{"n": 12345678901234567890}', "priority": "3", "start_after": "60"}
    refused = await acting.post("/act/send", data=fields)
    assert refused.status_code == 400
    assert "require a singleton_key" in refused.text
    response = await acting.post("/act/send", data=fields | {"singleton_key": "k"})
    job = sync_boss.get_job_by_id("a/b", response.headers["location"].split("/")[-1])

    assert (job.data, job.priority, job.singleton_key) == ({"n": 12345678901234567890}, 3, "k")
    assert "this is not JSON" in (await acting.post("/act/send", data={"queue": "a/b", "data": "{"})).text


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("2030-12-01T12:00-05:00", "2030-12-01T17:00:00+00:00"),
        ("2030-12-01T12:00", "2030-12-01T12:00:00+00:00"),
        ("2030-12-01 12:00Z", "2030-12-01T12:00:00+00:00"),
        ("soon", None),
        ("2030-13-01T12:00", None),
    ],
)
async def test_a_job_starts_at_an_instant_of_any_zone(acting, sync_boss, start, expected):
    sync_boss.create_queue("q")
    response = await acting.post("/act/send", data={"queue": "q", "start_after": start})

    assert response.status_code == (400 if expected is None else 303)
    if expected is None:
        assert "is neither seconds nor a time" in response.text
        assert f'name="start_after" value="{start}"' in response.text
    else:
        assert sync_boss.find_jobs("q")[0].start_after == datetime.fromisoformat(expected)


@pytest.mark.parametrize("data", ["12345678901234567.123456789", "[1e400]", '{"n": 0.10000000000000000001}'])
async def test_a_number_that_would_lose_digits_is_refused(acting, sync_boss, data):
    sync_boss.create_queue("q")
    response = await acting.post("/act/send", data={"queue": "q", "data": data})

    assert response.status_code == 400
    assert "has more digits than a float keeps" in response.text
    assert sync_boss.find_jobs("q") == []


@pytest.mark.parametrize("data", ["0.1", "1.50", "123456789.123456", "12345678901234567890", "1e3"])
async def test_a_number_that_a_job_can_have_is_sent_as_it_was_typed(acting, dsn, sync_boss, data):
    sync_boss.create_queue("q")
    await acting.post("/act/send", data={"queue": "q", "data": data})
    with psycopg.connect(dsn) as connection:
        ((sent,),) = connection.execute("select data::text from trioboss.live_job").fetchall()

    assert Decimal(sent) == Decimal(data)
