"""The pages of schedules, workers, events and the pipeline."""

import re
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from uuid import UUID

import psycopg
import pytest
from rendered import table_of, text_of

from trioboss.dashboard import ledger
from trioboss.dashboard.filters import LAST_ID
from trioboss.dashboard.values import ScheduleRow, Tick
from trioboss.model.schedule import Schedule

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def execute(dsn, statement, values=()):
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement, values)


# -- the ticks of a schedule


def make_row(cron="0 * * * *", *, fired=(), updated_on=NOON - timedelta(days=30), paused=False):
    schedule = Schedule("q", "k", cron, "UTC", "skip", None, {}, updated_on, updated_on)
    return ScheduleRow(schedule, paused, [Tick(due, due, None) for due in sorted(fired, reverse=True)], ())


def hours(*numbers):
    """Noon, so many hours ago."""
    return [NOON - number * HOUR for number in numbers]


def test_the_newest_ticks_are_those_of_the_ledger_and_those_that_are_not_in_it():
    row = ledger._with_newest(make_row(fired=hours(1, 2, 5)), NOON + timedelta(minutes=10))

    assert [tick.due for tick in row.ticks] == hours(0, 1, 2, 3, 4, 5)
    assert [tick.due for tick in row.ticks if tick.outcome == "missed"] == hours(0, 3, 4)
    assert row.missed == 3
    assert row.next == [NOON + HOUR]


def test_a_tick_of_this_moment_is_not_yet_missed():
    assert ledger._with_newest(make_row(fired=hours(1)), NOON + timedelta(seconds=20)).missed == 0


def test_nothing_is_missed_before_the_last_change_or_while_a_schedule_is_paused():
    changed = make_row(fired=hours(9), updated_on=NOON - 2.5 * HOUR)

    assert ledger._with_newest(changed, NOON + HOUR / 2).missed == 3
    assert ledger._with_newest(make_row(fired=hours(9), paused=True), NOON).missed == 0


@pytest.mark.parametrize(
    ("cron", "age"),
    [
        ("0 * * * *", 30 * 24),
        ("* * * * *", 5),
        ("*/7 8-11 * * *", 90),
        ("*/20 * * * 6", 400),
        ("*/20 9-18 * * *", 400),  # a page ends at a tick
        ("0 2 * * *", 400),
    ],
)
@pytest.mark.parametrize("down", [0, 3, 500])
def test_the_pages_of_a_ledger_have_every_tick_of_the_week_once(cron, age, down):
    """However long no boss was running: each tick is on one page, as fired or as missed."""
    now = NOON + timedelta(seconds=30)
    begun = max(now - timedelta(days=7), now - age * HOUR)
    every = list(takewhile(lambda due: due < now, ledger._walk(make_row(cron).schedule, begun)))
    fired = {due for due in every if not now - (down + 1) * HOUR <= due < now - HOUR}
    seen, before = [], None
    for _ in range(100):
        known = sorted((due for due in fired if before is None or due < before), reverse=True)[:30]
        row = make_row(cron, fired=known, updated_on=now - age * HOUR)
        page = ledger._with_ledger(row, now, before, 30)
        seen += [(tick.due, tick.fired_on is not None) for tick in page.ticks]
        before = page.older
        if before is None:
            break

    assert seen == [(due, due in fired) for due in reversed(every)]


# -- schedules


async def test_a_schedule_shows_its_next_tick_those_that_were_fired_and_those_that_were_missed(
    reading, dsn, sync_boss
):
    sync_boss.create_queue("q")
    execute(
        dsn,
        "insert into trioboss.schedule (queue, key, cron, updated_on) values "
        "('q', 'k', '0 * * * *', date_trunc('hour', now()) - interval '5.5 h'), ('q', 'odd', 'not cron', now())",
    )
    execute(
        dsn,
        "insert into trioboss.tick (queue, key, due, fired_on, job_id) "
        "select 'q', 'k', d, d + n * interval '25 s', case when n = 3 then gen_random_uuid() end "
        "from generate_series(3, 5, 2) n, lateral (select date_trunc('hour', now()) - n * interval '1 h' as d) t",
    )
    text = (await reading.get("/schedules")).text
    ticks = re.findall(r'<span class="tick (\w+)"', text)
    assert ticks.count("late") == 2
    assert ticks.count("missed") in (3, 4)  # the last one may be of this minute
    assert len(ticks) == 2 + ticks.count("missed")
    assert f'aria-label="Last ticks: 2 late, {ticks.count("missed")} missed"' in text
    assert "UTC: 75 s late" in text or "UTC: 1.25 min late" in text
    assert "not cron" in text
    page = (await reading.get("/queues/q/schedule?key=k")).text
    rows = table_of(page, "live-schedule")

    assert len([row for row in rows if "missed" in row]) in (3, 4)
    assert len([row for row in rows if "late" in row]) == 2
    assert (await reading.get("/queues/q/schedule?key=nobody")).status_code == 404


async def test_a_year_is_shown_if_it_is_another_one(reading, dsn, sync_boss):
    sync_boss.create_queue("q")
    execute(dsn, "insert into trioboss.schedule (queue, key, cron) values ('q', 'k', '0 0 1 1 *')")
    page = text_of((await reading.get("/queues/q/schedule?key=k")).text)
    year = datetime.now(UTC).year

    assert f"1 Jan {year + 1} 00:00:00" in page
    assert f"1 Jan {year + 2} 00:00:00" in page
    assert f" {year} " not in page


async def test_all_schedules_are_on_the_pages_and_are_found_by_their_queue_or_key(reading, dsn, sync_boss):
    for name in ("a", "b/c"):
        sync_boss.create_queue(name)
    execute(
        dsn,
        "insert into trioboss.schedule (queue, key, cron) "
        "select q, 'k' || n, '0 0 1 1 *' from unnest(array['a', 'b/c']) q, generate_series(1, 60) n",
    )
    seen, path = [], "/schedules"
    while path:
        text = (await reading.get(path)).text
        seen += [tuple(row.split()[:2]) for row in table_of(text, "live-schedules")]
        more = re.search(r'href="([^"]+)">More schedules<', text)
        path = more and more[1].replace("&amp;", "&")
    found = table_of((await reading.get("/schedules?text=K60")).text, "live-schedules")

    assert seen == sorted((queue, f"k{n}") for queue in ("a", "b/c") for n in range(1, 61))
    assert [row.split()[:2] for row in found] == [["a", "k60"], ["b/c", "k60"]]
    assert "No schedule has" in (await reading.get("/schedules?text=nowhere")).text


async def test_the_data_of_a_schedule_is_redacted(open_dashboard, boss):
    await boss.create_queue("q")
    await boss.schedule("q", "0 0 1 1 *", {"token": "hunter2", "name": "ann"}, key="k")
    async with open_dashboard(redact={"token"}) as client:
        page = (await client.get("/queues/q/schedule?key=k")).text

    assert "ann" in page
    assert "hunter2" not in page


# -- workers

WORKER = (
    "insert into trioboss.worker (id, boss, name, queue, lock, started_on, seen_on, gone_since, info) "
    "values (%s, gen_random_uuid(), %s, %s, %s, now() - interval '1 h', now() - %s * interval '1 s', "
    "now() - %s * interval '1 s', %s)"
)


async def test_workers_show_where_they_run_and_what_they_do(reading, dsn, filled):
    (job,) = filled.find_jobs("q", state="active")
    info = '{"host": "box", "pid": 7, "version": "9.8", "slots": 3, "lag": 2.5, "lag_on": "2026-01-02T03:04:05+00:00"}'
    execute(dsn, WORKER, [LAST_ID, "mailer", "q", 1, 0, None, info])
    execute(dsn, "update trioboss.live_job set worker = %s where id = %s", [LAST_ID, job.id])
    text = (await reading.get("/workers")).text
    (row,) = table_of(text, "live-workers")
    assert "<th>Last seen</th>" in text
    assert "<th>Event-loop lag</th>" in text

    for part in ("mailer box, pid 7 9.8", "not connected", "1 of 3", "lease ends"):
        assert part in row
    assert re.search(r"2\.5 s , 2 Jan (2026 )?03:04:05", row)  # when that was: it is the last block ever
    assert str(job.id)[-12:] in row
    assert 'href="/queues/q"' in text


@pytest.mark.parametrize(
    ("lock", "gone", "expected"),
    [
        ("held", None, "now"),
        (1, None, "last sign 5 s"),
        (None, None, "5 s"),
        (1, 90, "90 s"),
        (None, 90, "90 s"),
    ],
    ids=["connected", "not connected", "pooled", "gone", "pooled and gone"],
)
async def test_a_worker_was_last_seen_now_or_at_its_last_sign(reading, dsn, sync_boss, lock, gone, expected):
    """The time in its row is that of its registration, unless it is behind a pooler."""
    sync_boss.create_queue("q")
    held = 4711
    execute(dsn, WORKER, [LAST_ID, "w", "q", held if lock == "held" else lock, 5, gone, "{}"])
    with psycopg.connect(dsn) as connection:
        if lock == "held":
            connection.execute("select pg_advisory_lock(%s)", [held])
        text = (await reading.get("/workers")).text
        clock = connection.execute("select now()").fetchone()[0]
    cell = re.search(r'data-label="Last seen"[^>]*>(.*?)</td>', text)[1]
    if expected.endswith(" s"):
        seen_on = datetime.fromisoformat(re.search(r'datetime="([^"]+)"', cell)[1])
        assert abs((clock - seen_on).total_seconds() - int(expected.split()[-2])) < 60
        assert ("last sign" in cell) == expected.startswith("last sign")
    else:
        assert cell == expected


async def test_the_last_sign_of_a_worker_is_the_renewal_of_a_lease(reading, dsn, filled):
    (job,) = filled.find_jobs("q", state="active")
    execute(dsn, WORKER, [LAST_ID, "w", "q", 1, 3600, None, "{}"])
    execute(
        dsn,
        "update trioboss.live_job set worker = %s, started_on = '2030-01-01Z', heartbeat_on = '2030-01-02Z' "
        "where id = %s",
        [LAST_ID, job.id],
    )
    text = (await reading.get("/workers")).text

    assert (
        'datetime="2030-01-02T00:00:00+00:00"'
        in re.search(r'data-label="Last seen"[^>]*>(.*?)</td>', text)[1]
    )


async def test_the_overview_counts_the_workers_that_are_connected(reading, dsn, sync_boss):
    sync_boss.create_queue("q")
    execute(dsn, WORKER, [LAST_ID, "killed", "q", 1, 5, None, "{}"])
    execute(dsn, WORKER, [UUID(int=1), "gone", "q", 2, 5, 90, "{}"])
    assert "0 of 1 workers connected" in text_of((await reading.get("/")).text)
    execute(dsn, WORKER, [UUID(int=2), "there", "q", 4711, 5, None, "{}"])
    with psycopg.connect(dsn) as connection:
        connection.execute("select pg_advisory_lock_shared(4711)")
        assert "1 of 2 workers connected" in text_of((await reading.get("/")).text)
        execute(dsn, "delete from trioboss.worker where name = 'killed'")
        assert "0 1 worker " in text_of((await reading.get("/")).text)


async def test_workers_of_one_queue_and_one_worker_are_found(reading, dsn, sync_boss):
    for number, (name, queue) in enumerate(
        [("exact", "mail/in"), ("pattern", "mail/*"), ("other", "orders")], 1
    ):
        execute(dsn, WORKER, [UUID(int=number), name, queue, number, 5, None, "{}"])

    async def names(query):
        text = (await reading.get(f"/workers?{query}")).text
        return [row.split()[0] for row in table_of(text, "live-workers")]

    assert await names("queue=mail/in") == ["exact", "pattern"]
    assert await names("queue=mail/out") == ["pattern"]
    assert await names(f"worker={UUID(int=3)}") == ["other"]
    assert await names(f"worker={LAST_ID}") == []
    assert "This worker has ended" in (await reading.get(f"/workers?worker={LAST_ID}")).text


async def test_all_workers_are_on_the_pages(reading, dsn, sync_boss):
    sync_boss.create_queue("q")
    ids = [UUID(int=n) for n in range(1, 231)]
    with psycopg.connect(dsn, autocommit=True) as connection:
        for id in ids:
            connection.execute(WORKER, [id, f"w{id.int // 3}", "q", id.int, 0, None, "{}"])
    seen, path = [], "/workers"
    while path:
        text = (await reading.get(path)).text
        seen += re.findall(r'title="([0-9a-f-]{36})"', text)
        more = re.search(r'href="([^"]+)">More workers<', text)
        path = more and more[1].replace("&amp;", "&")

    assert seen == [str(id) for id in sorted(ids, key=lambda id: (f"w{id.int // 3}", id))]
    assert "0 of 230 workers connected" in text_of((await reading.get("/")).text)


# -- events and the pipeline


async def test_events_are_shown_with_the_warnings_that_were_kept(reading, acting, filled, dsn):
    (failed,) = filled.find_jobs("q", state="failed")
    await acting.post("/act/queue", data={"queue": "q", "action": "pause"})
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "insert into trioboss.warning (queue, kind, message, first_on, last_on, count) "
            "values ('q', 'queue_size', 'more than 20 jobs wait', now(), now(), 12)"
        )
        connection.execute("insert into trioboss.schedule (queue, key, cron) values ('q', 'k', '0 * * * *')")
        connection.execute("insert into trioboss.tick (queue, key, due) values ('q', 'k', now())")
        connection.execute(
            "insert into trioboss.worker (id, boss, name, queue, started_on, gone_since) "
            "select gen_random_uuid(), gen_random_uuid(), 'host:7', 'q', now() - interval '1 h', now()"
        )
    text = (await reading.get("/events")).text
    events = table_of(text, "live-events")

    assert len([row for row in table_of(text, "live-warnings") if "more than 20 jobs wait" in row]) == 1
    assert "12 times" in text
    for part in (
        f"attempt failed q {str(failed.id)[:8]}…{str(failed.id)[-12:]} ValueError it broke",
        "job completed q ",
        "tick fired q k",
        "worker started q host:7",
        "worker gone q host:7",
        "action pause q local 1 of 1 job",
    ):
        assert [row for row in events if part in row], part
    for kind in ("attempt", "job", "tick", "worker", "action"):
        rows = table_of((await reading.get(f"/events?kind={kind}")).text, "live-events")
        assert rows == [row for row in events if f" {kind} " in row]


async def test_the_pipeline_shows_exports_loads_and_the_last_audits(reading, dsn, sync_boss):
    assert "No history was audited" in (await reading.get("/pipeline")).text
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "insert into trioboss.lake (id, address, token, batch, exported) "
            "values (gen_random_uuid(), 's3://lake', 1, 7, '100')"
        )
        connection.execute(
            "insert into trioboss.load (id, name, state, staged, released, rejected) "
            "values ('orders.csv', 'q', 'released', 5, 4, 1)"
        )
        connection.execute(
            "insert into trioboss.history_audit values "
            "('database', now(), now() - interval '1 d', null, '{q,other}', 1234, 56, '{\"overlap\": 2}', '{}'), "
            "('s3://lake', now() - interval '1 h', null, null, '{}', 9, 0, '{}', '{\"no dead letter\": 1}')"
        )
    text = text_of((await reading.get("/pipeline")).text)

    assert "s3://lake 100 nothing" in text
    assert "orders.csv q released 5 4 1" in text
    assert "only q, other from" in text
    assert "1,234 56 2 overlap" in text
    assert "9 0 no violations 1 no dead letter (possible)" in text


async def test_a_lake_that_does_not_have_all_jobs_shows_since_when(reading, dsn, filled):
    execute(
        dsn,
        "insert into trioboss.lake (id, address, token, batch, exported) "
        "values (gen_random_uuid(), 's3://lake', 1, 7, '3')",
    )
    text = text_of((await reading.get("/pipeline")).text)

    assert re.search(r"s3://lake 3 jobs that ended since \d+ \w+ ", text)
