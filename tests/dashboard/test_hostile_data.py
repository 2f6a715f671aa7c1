"""Payloads that are hostile, large or secret are shown as data, cut off or hidden."""

import copy
import datetime
import html
import itertools
import json
import re
from decimal import Decimal
from urllib.parse import parse_qsl

import psycopg
import pytest
from psycopg import sql

from trioboss.dashboard.filters import JobFilter
from trioboss.dashboard.formatting import clean
from trioboss.dashboard.payloads import make_show, show_json
from trioboss.dashboard.rendering import decode_queue, queue_address
from trioboss.sql import Catalog

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


async def test_numbers_have_all_their_digits(reading, dsn, sync_boss):
    sync_boss.create_queue("q")
    id = sync_boss.send("q")
    numbers = '{"pi": 12345678901234567.123456789, "small": 1e-30, "text": "1.50"}'
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("update trioboss.live_job set data = %s where id = %s", [numbers, id])
    text = html.unescape((await reading.get(f"/queues/q/jobs/{id}")).text)

    assert '"pi": 12345678901234567.123456789,' in text
    assert '"text": "1.50"' in text
    assert re.search(r'"small": [0.]+1[,\n]|"small": 1E-30', text)


async def test_long_errors_are_cut_off(reading, dsn, sync_boss):
    sync_boss.create_queue("q", retry_limit=0)
    id = sync_boss.send("q")
    sync_boss.fail("q", sync_boss.fetch("q"), ValueError("x"))
    error = {"name": "E" * 10_000, "message": "m" * 1_000_000, "stack": "s" * 1_000_000}
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "insert into trioboss.attempt (job_id, queue, attempt, started_on, ended_on, outcome, error) "
            "select %s, 'q', n, now(), now(), 'failed', %s from generate_series(2, 20) n",
            [id, json.dumps(error)],
        )
    text = (await reading.get(f"/queues/q/jobs/{id}")).text

    assert len(text) < 200_000
    assert "more characters" in text
    assert "s" * 90_000 in text  # of the newest attempt


async def test_data_that_python_cannot_read_is_explained(reading, dsn, sync_boss):
    sync_boss.create_queue("q")
    id = sync_boss.send("q")
    with psycopg.connect(dsn, autocommit=True) as connection:
        statement = "update trioboss.live_job set data = ('{\"n\": ' || repeat('9', 5000) || '}')::jsonb where id = %s"
        connection.execute(statement, [id])
    response = await reading.get(f"/queues/q/jobs/{id}")

    assert response.status_code == 200
    assert "Python cannot read this value" in response.text


async def test_only_small_data_is_unfolded(reading, sync_boss):
    sync_boss.create_queue("q")
    pages = [
        (await reading.get(f"/queues/q/jobs/{sync_boss.send('q', data)}")).text for data in ("x", "x" * 3000)
    ]

    assert ['<details class="card fold" open><summary>Data' in page for page in pages] == [True, False]


async def test_large_data_is_cut_off(reading, sync_boss):
    sync_boss.create_queue("q")
    id = sync_boss.send("q", {"text": "x" * 1_000_000})
    text = (await reading.get(f"/queues/q/jobs/{id}")).text

    assert len(text) < 130_000
    assert "the rest is cut off" in text
    assert 'Data <span class="muted">977 KiB' in text


async def test_of_data_that_is_too_large_to_be_parsed_the_beginning_is_shown(reading, dsn, sync_boss):
    """Python would parse it every second while the page is live, and nothing else runs meanwhile."""
    sync_boss.create_queue("q")
    id = sync_boss.send("q", {"rows": [{"n": n, "html": "<script>"} for n in range(100_000)]})
    text = (await reading.get(f"/queues/q/jobs/{id}")).text

    assert "{&#34;rows&#34;: [{&#34;n&#34;: 0, &#34;html&#34;: &#34;&lt;script&gt;&#34;}, {" in text
    assert "the rest is cut off" in text
    assert re.search(r'Data <span class="muted">3,\d{3} KiB', text)
    with psycopg.connect(dsn) as connection:
        statement = Catalog("trioboss").get("show_payload")
        connection.execute(f"PREPARE payload AS {statement.text}".encode())
        values = {"queue": "q", "id": str(id), "most": 1000}
        given = sql.SQL(", ").join(sql.Literal(values[name]) for name in statement.parameters)
        ((data, size, *_),) = connection.execute(sql.SQL("EXECUTE payload ({})").format(given))
    assert (len(data), size > 3_000_000) == (1000, True)  # the rest does not leave the server


async def test_data_that_is_too_large_to_be_redacted_is_not_shown(open_dashboard, sync_boss):
    sync_boss.create_queue("q")
    id = sync_boss.send("q", {"password": "hunter2", "rows": ["x" * 90] * 20_000})
    async with open_dashboard(redact={"password"}) as client:
        text = (await client.get(f"/queues/q/jobs/{id}")).text

    assert "too large to hide fields in it" in text
    assert "hunter2" not in text
    assert "xxx" not in text


async def test_a_value_that_redact_fails_for_is_not_shown(open_dashboard, sync_boss, caplog):
    sync_boss.create_queue("q", retry_limit=0)
    id = sync_boss.send("q", {"password": "hunter2"})
    sync_boss.fail("q", sync_boss.fetch("q"), ValueError("hunter2"))

    def redact(queue, value):
        raise KeyError("hunter2")

    async with open_dashboard(redact=redact) as client:
        pages = [await client.get(f"/queues/q{path}") for path in ("", "/jobs", f"/jobs/{id}")]

    assert [page.status_code for page in pages] == [200, 200, 200]
    assert not [page for page in pages if "hunter2" in page.text]
    assert "`redact` failed with KeyError, so this value is not shown" in pages[2].text
    assert caplog.text.count("redact: failed with KeyError for a job of queue q") == 1


def test_data_of_a_live_page_is_redacted_once_and_not_every_second():
    calls = []

    def redact(queue, value):
        calls.append(value)
        return value

    show = make_show(redact)
    shown = [show("q", '{"n": 1.50}', 11) for _ in range(3)]

    assert [each.text for each in shown] == ['{\n  "n": 1.50\n}'] * 3
    assert len(calls) == 1
    assert show("q", '{"n": 2}', 8).text == '{\n  "n": 2\n}'


@pytest.mark.parametrize(
    "redact",
    [None, {"x"}, lambda queue, value: copy.deepcopy(value)],
    ids=["nothing hidden", "a field hidden", "a function"],
)
async def test_data_that_is_nested_deeply_is_shown_or_explained(open_dashboard, dsn, sync_boss, redact):
    """A value that could not be redacted is not shown, whichever function recursed over it."""
    sync_boss.create_queue("q")
    async with open_dashboard(redact=redact) as client:
        for depth in (300, 480, 950, 5000):
            id = sync_boss.send("q")
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute(
                    "update trioboss.live_job set data = (repeat('[', %s) || repeat(']', %s))::jsonb where id = %s",
                    [depth, depth, id],
                )
            response = await client.get(f"/queues/q/jobs/{id}")
            assert response.status_code == 200
            assert ("it is nested too deeply" in response.text) != (response.text.count("[") >= 300)


def test_json_is_encoded_only_as_far_as_it_is_shown():
    """A page that is live does it every second."""

    encoded = itertools.count(1)

    class Endless(list):
        def __iter__(self):
            return encoded

        def __bool__(self):
            return True

    assert show_json(Endless()).endswith("\n… the rest is cut off")
    assert next(encoded) < 100_000


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
    assert show_json({"n": Decimal("1.50"), "m": [True, None]}).count("1.50") == 1
    assert show_json({"n": 12345678901234567890}) == '{\n  "n": 12345678901234567890\n}'


@pytest.mark.parametrize("name", ["q", "a/b", "a/jobs", "/", ".", "..", "...", "a.b", "-", "_"])
def test_every_name_of_a_queue_has_an_address_of_its_own(name):
    address = queue_address("", name, "jobs")

    assert decode_queue(address.split("/")[2].replace("%21", "!")) == name
    assert address.count("/") == 3


def test_a_filter_is_the_same_in_its_address():
    now = datetime.datetime.now(datetime.UTC)
    filter = JobFilter.parse(
        {"state": "failed", "key": " ü & ö\n", "since": "2h", "attempt": "3", "text": "01-9A"}, now
    )

    assert JobFilter.parse(dict(parse_qsl(filter.query())), now) == filter
