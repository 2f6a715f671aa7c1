"""Pictures of every page, in light and dark, wide and narrow: python tests/dashboard/screenshots.py FOLDER"""

import math
import random
import sys
import time
from pathlib import Path
from typing import Any

from browser_helpers import open_browser
from dashboard_site import Site, open_site

from trioboss.dashboard import actions, queries
from trioboss.testing import temporary_database, temporary_server

PAGES = {
    "overview": "",
    "queue": "queues/email",
    "jobs": "queues/email/jobs",
    "failed": "queues/email/jobs?state=failed",
    "strict": "queues/orders~paid",
    "keys": "queues/orders~paid/keys",
    "key": "queues/orders~paid/key?key=customer%207",
    "choose": "queues/email/confirm?key=customer%207",
    "retry": "queues/email/confirm?error=CardDeclined",
    "confirm": "queues/email/confirm?action=delete&state=failed",
    "redrive": "queues/dead~letters/redrive",
    "send": "queues/email/send",
    "problem": "queues/email/jobs?since=tomorrow",
    "missing": "queues/nowhere",
    "schedules": "schedules",
    "schedule": "queues/reports/schedule?key=hourly",
    "workers": "workers",
    "events": "events",
    "audit": "audit",
    "pipeline": "pipeline",
}
COUNTING = "queues/imports/confirm?action=cancel&key=nobody"
SAMPLES = """
    INSERT INTO trioboss.queue_sample AS s
        (queue, minute, deferred, waiting, ready, active, arrived, completed, failed, waits, runs)
    VALUES (%s, date_trunc('minute', now()) - %s * interval '1 min', 0, 0, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (queue, minute) DO UPDATE SET (arrived, completed, failed, ready, waits, runs)
        = (excluded.arrived, excluded.completed, excluded.failed, excluded.ready, excluded.waits, excluded.runs)
"""


SCHEDULES = """
    INSERT INTO trioboss.schedule (queue, key, cron, timezone, missed, paused, data, options, created_on, updated_on)
    SELECT queue, key, cron, zone, 'skip', paused, '{"month": "now"}', '{"priority": 5}', now() - interval '30 d',
           now() - interval '30 d'
    FROM (VALUES ('email', 'digest', '0 7 * * 1-5', 'Europe/Berlin', false),
                 ('imports', '', '*/15 * * * *', 'UTC', true), ('reports', 'yearly', '0 0 1 1 *', 'UTC', false),
                 ('webhooks', 'probe', '*/5 * * * *', 'UTC', false), ('reports', 'hourly', '0 * * * *', 'UTC', false)
    ) s (queue, key, cron, zone, paused)
    ON CONFLICT (queue, key) DO UPDATE SET updated_on = excluded.updated_on
"""
# Every seventh tick was late, every eleventh missed.
TICKS = """
    INSERT INTO trioboss.tick (queue, key, due, fired_on, job_id)
    SELECT queue, key, due, due + CASE WHEN mod(n, 7) = 0 THEN interval '4 min' ELSE interval '30 ms' END,
           gen_random_uuid()
    FROM (VALUES ('reports', 'hourly', interval '1 h'), ('webhooks', 'probe', interval '5 min'),
                 ('imports', '', interval '15 min')) s (queue, key, step), generate_series(0, 130) n,
         LATERAL (SELECT date_bin(step, now(), 'epoch') - n * step AS due) d
    WHERE mod(n, 11) <> 10
    ON CONFLICT DO NOTHING
"""
AUDIT = """
    INSERT INTO trioboss.audit (who, action, queue, filter, requested, affected, at)
    SELECT who, action, queue, filter::jsonb, requested, affected, now() - n * interval '37 min'
    FROM (VALUES
        (1, 'ann', 'retry', 'email',
         '{"state": "failed", "error": "CardDeclined", "counted_on": "2026-11-17T08:11:00+00:00"}', 1204, 1201),
        (2, 'ann', 'redrive', 'dead/letters', '{"source": "email", "counted_on": "2026-11-17T08:09:00+00:00"}', 31, 31),
        (3, 'bob', 'pause', 'imports', NULL, 1, 1),
        (4, 'bob', 'delete', 'orders/paid', '{"ids": ["019a1ec9-e14f-7296-b2bf-4ca96cc687ee"]}', 1, 1),
        (5, 'ann', 'priority', 'email', '{"state": "queued", "key": "customer 7", "priority": 9}', 12, 12),
        (6, 'cem', 'run-schedule', 'reports', '{"schedule": "hourly"}', 1, 1)
    ) a (n, who, action, queue, filter, requested, affected)
    ORDER BY n DESC
"""
LAKES = """
    INSERT INTO trioboss.lake (id, address, token, batch, exported, exported_on, holds, pending)
    SELECT gen_random_uuid(), address, 3, batch, exported, now() - age, holds, NULL
    FROM (VALUES ('s3://history/production', 4211, pg_current_xact_id(), interval '2 min', true),
                 ('/srv/lake/staging', 12, '760'::xid8, interval '3 h', false)) l (address, batch, exported, age, holds)
"""
LOADS = """
    INSERT INTO trioboss.load (id, name, state, staged, released, rejected)
    VALUES ('orders-2026-11-17.csv', 'imports', 'released', 250000, 249998, 2)
"""
AUDITS = """
    INSERT INTO trioboss.history_audit VALUES
        ('database', now() - interval '20 min', now() - interval '1 d', NULL, '{}', 1204311, 1209874, '{}', '{}'),
        ('s3://history/production', now() - interval '1 d', NULL, NULL, '{email,reports}', 88431222, 88501933,
         '{"overlap": 2}', '{"no dead letter": 1}')
"""
LAG = """
    UPDATE trioboss.worker SET info = info || jsonb_build_object('lag', 1.84, 'lag_on', now() - interval '3 h')
"""


def fill_history(site: Site) -> None:
    """An hour that looks like one: the samples of a test are all of the last minute."""
    chance = random.Random(7)
    for number, queue in enumerate(("email", "orders/paid", "reports", "webhooks", "imports", "slow")):
        for minute in range(-3, 60):  # also the minutes in which the pictures are taken
            wave = 1 + math.sin(minute / 9 + number) * 0.6
            arrived = int(chance.gauss(400, 60) * wave / (number + 1)) if queue != "imports" else minute % 7
            failed = int(chance.random() < 0.3) * chance.randrange(1, 9) if number in (0, 3) else 0
            waits = [arrived // 2, arrived // 3, arrived // 8, arrived // 20, 2] + [0] * 8
            runs = [0, arrived // 5, arrived // 2, arrived // 4, arrived // 30] + [0] * 8
            ready = int(abs(chance.gauss(20, 14)) * wave)
            completed = max(arrived - chance.randrange(20), 0)
            site.execute(SAMPLES, queue, minute, ready, 4, arrived, completed, failed, waits, runs)
    site.execute(
        "insert into trioboss.warning (queue, kind, message, first_on, last_on, count) values "
        "('imports', 'queue_size', 'more than 20 jobs wait', now() - interval '12 min', now(), 12)"
    )
    for statement in (SCHEDULES, TICKS, AUDIT, LAKES, LOADS, AUDITS, LAG):
        site.execute(statement)


def take_all(folder: Path) -> None:
    """Take a picture of each page in each scheme."""
    with (
        temporary_server(max_connections=100) as server,
        temporary_database(server.dsn) as dsn,
        open_site(dsn, act_dsn=dsn) as site,
        open_browser() as browser,
    ):
        fill_history(site)
        queries.BUDGET, actions._CHUNK = 10, 10  # the queue `imports` has 25 jobs
        time.sleep(3)  # the worker runs the first jobs
        pages = dict(PAGES)
        ((failed,),) = site.execute("select id from trioboss.archive where outcome = 'failed' limit 1")
        pages["job"] = f"queues/email/jobs/{failed}"
        take_documented(browser, site, folder)
        for scheme in ("light", "dark"):
            for suffix, width in (("", 1280), ("-phone", 390), ("-wide", 1920)):
                take_pages(browser, site, folder, pages, scheme, suffix, width)


def take_pages(
    browser: Any, site: Site, folder: Path, pages: dict[str, str], scheme: str, suffix: str, width: int
) -> None:
    """Take a picture of each page, as a screen of this width shows it."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 844})
    page = context.new_page()
    for name, path in pages.items():
        page.goto(site.url + path)
        if page.query_selector("#live-toggle:not([hidden])"):
            page.wait_for_selector(".live")
        page.screenshot(path=folder / f"{name}-{scheme}{suffix}.png", full_page=width == 1280)
    for name, path in (
        ("counting", COUNTING),
        ("progress", "queues/imports/confirm?action=priority&state=queued"),
    ):
        take_step(page, site.url + path, name, folder / f"{name}-{scheme}{suffix}.png", width)
    context.close()


def take_step(page: Any, url: str, name: str, picture: Path, width: int) -> None:
    """Take a picture of a page that goes on by itself: its next request leads nowhere."""
    sent: list[Any] = []

    def hold_next(route: Any) -> None:
        sent.append(route)
        if len(sent) == 1:
            route.continue_()
        elif route.request.is_navigation_request():
            route.fulfill(status=204)  # the page stays

    page.route("**/confirm?*" if name == "counting" else "**/act/jobs", hold_next)
    page.goto(url)
    if name == "progress":
        page.click("button.primary")
        page.wait_for_selector("progress")
    page.screenshot(path=picture, full_page=width == 1280)
    for route in sent[1:]:
        if not route.request.is_navigation_request():
            route.abort()
    page.unroute_all()


def take_documented(browser: Any, site: Site, folder: Path) -> None:
    """Take the two pictures that the documentation shows, smaller than the pages."""
    context = browser.new_context(
        color_scheme="light", viewport={"width": 1280, "height": 829}, device_scale_factor=0.75
    )
    page = context.new_page()
    for name in ("overview", "queue"):
        page.goto(site.url + PAGES[name])
        page.wait_for_selector(".live")
        page.screenshot(path=folder / f"dashboard-{name}.png")
    context.close()


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    take_all(folder)
    print(f"pictures of all pages are in {folder}")
