"""Pictures of every page, in light and dark, wide and narrow: python tests/dashboard/screenshots.py FOLDER"""

import math
import random
import sys
import time
from pathlib import Path
from typing import Any

from browser_helpers import open_browser
from dashboard_site import Site, open_site

from trioboss.testing import temporary_database, temporary_server

PAGES = {
    "overview": "",
    "queue": "queues/email",
    "jobs": "queues/email/jobs",
    "failed": "queues/email/jobs?state=failed",
    "strict": "queues/orders~paid",
    "keys": "queues/orders~paid/keys",
    "key": "queues/orders~paid/key?key=customer%207",
    "confirm": "queues/email/confirm?action=delete&state=failed",
    "redrive": "queues/dead~letters/redrive",
    "send": "queues/email/send",
    "schedules": "schedules",
    "workers": "workers",
    "events": "events",
    "audit": "audit",
    "pipeline": "pipeline",
}
SAMPLES = """
    INSERT INTO trioboss.queue_sample AS s
        (queue, minute, deferred, waiting, ready, active, arrived, completed, failed, waits, runs)
    VALUES (%s, date_trunc('minute', now()) - %s * interval '1 min', 0, 0, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (queue, minute) DO NOTHING
"""


def fill_history(site: Site) -> None:
    """An hour that looks like one: the samples of a test are all of the last minute."""
    chance = random.Random(7)
    for number, queue in enumerate(("email", "orders/paid", "reports", "webhooks", "imports", "slow")):
        for minute in range(1, 60):
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


def take_all(folder: Path) -> None:
    """Take a picture of each page in each scheme."""
    with (
        temporary_server(max_connections=100) as server,
        temporary_database(server.dsn) as dsn,
        open_site(dsn, act_dsn=dsn) as site,
        open_browser() as browser,
    ):
        fill_history(site)
        time.sleep(3)  # the worker runs the first jobs
        pages = dict(PAGES)
        ((failed,),) = site.execute("select id from trioboss.archive where outcome = 'failed' limit 1")
        pages["job"] = f"queues/email/jobs/{failed}"
        take_documented(browser, site, folder)
        for scheme in ("light", "dark"):
            for name, width in [
                *((name, 1280) for name in pages),
                ("overview", 390),
                ("job", 390),
                ("queue", 390),
            ]:
                context = browser.new_context(
                    color_scheme=scheme, viewport={"width": width, "height": 860 if width > 400 else 800}
                )
                page = context.new_page()
                page.goto(site.url + pages[name])
                page.wait_for_selector(".live") if page.query_selector("#live-toggle:not([hidden])") else None
                page.screenshot(
                    path=folder / f"{name}-{scheme}{'' if width > 400 else '-phone'}.png",
                    full_page=width > 400,
                )
                context.close()


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
