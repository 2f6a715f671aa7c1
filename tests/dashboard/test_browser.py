"""The dashboard in a real browser: every page and every action, beside a worker that runs."""

import re
from itertools import pairwise
from urllib.parse import quote

import pytest
from browser_helpers import CONTRAST, text_of, until
from dashboard_site import open_site

from trioboss.testing import temporary_database

pytestmark = pytest.mark.xdist_group("browser")  # one browser, and one site

PAGES = {
    "": "Queues",
    "queues/email": "email",
    "queues/email?span=24h": "email",
    "queues/orders~paid": "orders/paid",
    "queues/email/jobs": "Jobs",
    "queues/email/jobs?state=failed&error=CardDeclined": "Jobs",
    "queues/email/jobs?since=tomorrow": "Jobs",
    "queues/email/jobs/{failed}": re.compile("[0-9a-f-]{36}"),
    "queues/slow/jobs/{active}": re.compile("[0-9a-f-]{36}"),
    "queues/orders~paid/keys": "Keys",
    "queues/orders~paid/key?key=customer%207": "customer 7",
    "queues/email/confirm?action=delete&state=failed": re.compile("Delete . jobs"),
    "queues/email/confirm?key=k": "What should happen?",
    "queues/dead~letters/redrive": re.compile("Redrive . dead letter"),
    "queues/email/send": "Send a job",
    "schedules": "Schedules",
    "queues/reports/schedule?key=hourly": "reports hourly",
    "workers": "Workers",
    "events": "Events",
    "audit": "Audit",
    "pipeline": "Pipeline",
    "queues/nowhere": "Not found",
}


@pytest.mark.parametrize("path", PAGES, ids=str)
def test_every_page_shows_in_both_schemes_with_contrast_and_fits_a_phone(page, site, path):
    page.goto(site.url + fill(path, site))
    heading = page.inner_text("h1").strip()
    assert heading == PAGES[path] if isinstance(PAGES[path], str) else PAGES[path].match(heading)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(CONTRAST) == [], scheme
    levels = page.eval_on_selector_all("h1, h2, h3", "all => all.map(each => Number(each.tagName[1]))")
    assert all(next <= last + 1 for last, next in pairwise(levels)), levels
    for width in (375, 320):
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.problems[:] = [
        each for each in page.problems if "Failed to load resource" not in each
    ]  # of an error's page


def test_long_names_and_keys_widen_no_page(page, site):
    queue, key = "long-" * 30 + "name", "https://example.org/" + "k" * 100
    site.boss.create_queue(queue, policy="key_strict_fifo")
    try:
        first, second = (site.boss.send(queue, singleton_key=key) for _ in range(2))
        paths = ["", "/jobs", "/keys", f"/key?key={quote(key)}", "/send", "/redrive"]
        paths += [
            f"/jobs/{first}",
            f"/jobs/{second}",
            "/confirm?action=delete",
            f"/confirm?action=priority&key={quote(key)}",
        ]
        for path in paths:
            page.goto(f"{site.url}queues/{queue}{path}")
            for width in (1280, 375, 320):
                page.set_viewport_size({"width": width, "height": 700})
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
    finally:
        site.boss.delete_queue(queue)


def fill(path, site):
    """The path, with the ids of a failed job and of an active one."""
    ((failed,),) = site.execute(
        "select id from trioboss.archive where queue = 'email' and outcome = 'failed' limit 1"
    )
    ((active,),) = site.execute("select id from trioboss.live_job where queue = 'slow' limit 1")
    return path.format(failed=failed, active=active)


def test_the_keyboard_reaches_everything(page, site):
    page.goto(site.url)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("/")
    page.keyboard.type("orders")
    page.keyboard.press("Enter")
    page.wait_for_url("**text=orders**")
    assert page.locator("td.name").count() == 1
    page.focus("td.name a")
    page.keyboard.press("Enter")
    page.wait_for_url("**/queues/orders~paid")


HOSTILE = {
    "html": "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">",
    "t": "\u202etfel ot thgir",
    "n": 2**64 + 1,
    "f": 0.1,
    "long": "x" * 1_000_000,
}


def test_hostile_payloads_are_data(page, site):
    site.boss.create_queue("hostile", policy="singleton")
    id = site.boss.send("hostile", HOSTILE, singleton_key="<img src=x onerror=alert(1)>")
    for path in ("", f"/jobs/{id}", "/jobs", "/keys"):
        page.goto(f"{site.url}queues/hostile{path}")
        assert "taken" not in page.title()
        assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
    site.execute(
        "update trioboss.live_job set data = data || '{\"f\": 12345678901234567.123456789}' where id = %s",
        id,
    )
    page.goto(f"{site.url}queues/hostile/jobs/{id}")
    page.click("summary:has-text('Data')")
    text = text_of(page)

    assert str(2**64 + 1) in text
    assert "12345678901234567.123456789" in text
    assert r"\u202e" in text
    assert page.evaluate("document.documentElement.scrollWidth") <= 1200


# -- a person who has never seen it


def test_why_a_job_does_not_run_is_found_and_its_key_unblocked(page, site):
    """From the overview to the job that blocks a key, and the effect of a retry, seen live."""
    page.goto(site.url)
    page.click("a.badge:has-text('blocked key')")
    page.click("td a:text-is('customer 7')")
    assert "failed, and 5 jobs wait behind it" in text_of(page)
    page.click("td a.mono")
    assert "is blocked by job" in text_of(page)
    page.click("a:text-is('See its key')")
    blocker = site.boss.find_jobs("orders/paid", state="failed")[0]
    site.execute("update trioboss.live_job set data = '{\"order\": 0}' where id = %s", blocker.id)
    page.click("button:text-is('Retry')")
    page.wait_for_selector("#done:not([hidden])")
    until(page, "() => document.body.innerText.includes('This key has no jobs')")

    assert site.boss.get_blocked_keys("orders/paid") == []


def test_the_failures_of_yesterday_and_one_class_are_retried(page, site):
    """Those of the day before in the zone of the reader, New York."""
    ids = [
        row[0]
        for row in site.execute(
            "select id from trioboss.archive where queue = 'email' and outcome = 'failed'"
        )
    ]
    for id, hours in zip(ids, (1, 12, 23), strict=False):  # of yesterday; later ones stay of today
        site.execute(
            "update trioboss.archive set completed_on = (date_trunc('day', now() at time zone 'America/New_York') "
            "- interval '1 d' + %s * interval '1 h') at time zone 'America/New_York' where id = %s",
            hours,
            id,
        )
    page.goto(f"{site.url}queues/email")
    page.click("a:has-text('CardDeclined')")
    page.click(".chips a:text-is('yesterday')")
    assert page.locator(".chips a[aria-current]:text-is('yesterday')").count() == 1
    page.click("a:has-text('everything this filter matches')")
    assert page.inner_text("h1") == "Retry 3 jobs?"
    page.click("button.primary")
    page.wait_for_selector("#done:not([hidden])")
    assert text_of(page, "#done") == "Retry: 3 of 3 jobs changed"
    page.goto(f"{site.url}audit")
    assert "CardDeclined" in page.inner_text("tbody tr:first-child")


def test_selected_jobs_are_cancelled_and_resumed(page, site):
    page.goto(f"{site.url}queues/imports/jobs?state=queued")
    assert page.is_disabled("button:text-is('Cancel')")
    boxes = page.locator("tbody input[type=checkbox]")
    boxes.nth(0).check()
    boxes.nth(1).check()
    assert page.inner_text("#selected") == "2 selected"
    page.click("button:text-is('Cancel')")
    assert page.inner_text("h1") == "Cancel 2 jobs?"
    page.click("button.primary")
    page.wait_for_selector("#done:not([hidden])")
    assert len(site.boss.find_jobs("imports", state="cancelled")) == 2
    page.goto(f"{site.url}queues/imports/jobs?state=cancelled")
    page.check("#select-all")
    page.click("button:text-is('Resume')")
    page.click("button.primary")
    page.wait_for_selector("#done:not([hidden])")
    assert site.boss.find_jobs("imports", state="cancelled") == []


def test_jobs_are_deleted_only_with_the_name_of_the_queue(page, site):
    site.boss.create_queue("trash")
    site.boss.insert("trash", [{}] * 3)
    page.goto(f"{site.url}queues/trash/confirm?action=delete&state=queued")
    page.fill("input[name=confirm]", "trash can")
    page.click("button.danger")
    page.wait_for_selector("[role=alert]")
    assert "type the name of the queue" in text_of(page)
    assert page.evaluate("document.activeElement.name") == "confirm"
    page.problems.clear()  # the browser reports the refusal as an error
    assert page.input_value("input[name=confirm]") == "trash can"  # the form is there again
    page.fill("input[name=confirm]", "trash")
    page.click("button.danger")
    page.wait_for_selector("#done:not([hidden])")
    assert site.boss.find_jobs("trash") == []


def test_many_jobs_are_changed_in_chunks_that_leave_no_trace_in_the_history(page, site):
    site.boss.create_queue("many")
    site.boss.insert("many", [{}] * 2300)
    page.goto(f"{site.url}queues/many/jobs")
    page.click("a:has-text('everything this filter matches')")
    page.click("a.button:text-is('Priority')")
    page.fill("input[name=priority]", "5")
    chunks = []
    page.on("response", lambda answer: chunks.append(answer) if answer.url.endswith("/act/jobs") else None)
    page.click("button.primary")
    page.wait_for_selector("#done:not([hidden])")

    assert text_of(page, "#done") == "Priority: 2,300 of 2,300 jobs changed"
    assert {job.priority for job in site.boss.find_jobs("many", limit=3000)} == {5}
    assert [answer.status for answer in chunks] == [200, 200, 303]
    page.go_back()  # and not to one of the chunks, which the browser would offer to send again
    assert page.inner_text("h1") == "What should happen?"


def test_a_bar_shows_how_far_an_action_is_and_it_stops_where_a_person_says(page, site):
    """The answer to the second chunk is kept back until the page of the first one was seen."""
    site.boss.create_queue("stopped")
    site.boss.insert("stopped", [{}] * 2300)
    page.goto(f"{site.url}queues/stopped/confirm?action=cancel&state=queued")
    sent = []

    def hold(route):
        sent.append(route)
        if len(sent) == 1:
            route.continue_()

    page.route("**/act/jobs", hold)
    page.click("button.primary")
    page.wait_for_selector("progress")
    assert page.inner_text("h1") == "Cancel: 1,000 jobs so far"
    assert [page.get_attribute("progress", name) for name in ("value", "max")] == ["1000", "2300"]
    assert "1,000 of 2,300 examined" in text_of(page)
    page.click("a:text-is('Stop here')")
    page.wait_for_selector(".live")

    assert len(site.boss.find_jobs("stopped", state="cancelled", limit=3000)) == 1000
    page.goto(f"{site.url}audit")
    assert "1,000 of 1,000" in page.inner_text("tbody tr:first-child")


def test_an_action_goes_on_after_the_dashboard_did_not_answer(page, site):
    site.boss.create_queue("broken")
    site.boss.insert("broken", [{}] * 1200)
    page.goto(f"{site.url}queues/broken/confirm?action=cancel&state=queued")
    sent = []

    def cut(route):
        sent.append(route)
        route.abort() if len(sent) == 2 else route.continue_()

    page.route("**/act/jobs", cut)
    page.click("button.primary")
    page.wait_for_selector("#done:not([hidden])")
    assert "does not answer" in text_of(page, "#done")
    page.click("button:text-is('Go on')")
    page.wait_for_selector("#done:text-is('Cancel: 1,200 of 1,200 jobs changed')")
    page.problems.clear()  # the browser reports the cut as an error


def test_a_queue_is_paused_and_a_deferred_job_runs_now(page, site):
    page.goto(f"{site.url}queues/reports")
    page.click("button:text-is('Pause queue')")
    page.wait_for_selector("button:text-is('Unpause queue')")
    assert site.boss.get_queue("reports").paused
    page.click("button:text-is('Unpause queue')")
    page.wait_for_selector("button:text-is('Pause queue')")
    page.goto(f"{site.url}queues/reports/jobs?state=deferred")
    page.click("td.mono a")
    assert "deferred until" in text_of(page)
    page.click("button:text-is('Run now')")
    until(page, "() => document.querySelector('.why .badge').textContent === 'completed'")


def test_a_schedule_is_run_paused_and_resumed(page, site):
    page.goto(f"{site.url}schedules")
    page.click("button:text-is('Run now')")
    page.wait_for_url("**/queues/reports/jobs/*")
    page.goto(f"{site.url}schedules")
    page.click("button:text-is('Pause')")
    page.wait_for_selector(".badge.paused")
    page.click("button:text-is('Unpause')")
    page.wait_for_selector("button:text-is('Pause')")


def test_a_job_is_sent_and_runs(page, site):
    page.goto(f"{site.url}queues/email/send")
    page.fill("textarea", '{"to": "ann@example.org"}')
    page.click("button.primary")
    page.wait_for_url("**/jobs/*")
    until(page, "() => document.querySelector('.why .badge').textContent === 'completed'")


def test_dead_letters_are_redriven(page, site):
    page.goto(f"{site.url}queues/dead~letters/redrive")
    count = len(site.boss.find_jobs("dead/letters", state="created"))
    page.click("button.primary")
    page.wait_for_selector("#done:not([hidden])")
    assert count > 0
    assert text_of(page, "#done") == f"Redrive: {count} of {count} job{'' if count == 1 else 's'} changed"


def test_the_theme_is_chosen_and_kept(page, site):
    page.goto(site.url)
    page.keyboard.press("t")
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.goto(f"{site.url}workers")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_without_a_right_to_act_there_is_nothing_to_press(page, server_dsn):
    with temporary_database(server_dsn) as dsn, open_site(dsn) as reading:
        for path in PAGES:
            if "confirm" in path or "send" in path:
                continue
            page.goto(reading.url + fill(path, reading))
            assert page.locator("form[method=post], [name=action]").count() == 0, path
        page.problems[:] = [each for each in page.problems if "Failed to load resource" not in each]
        page.goto("about:blank")  # ends its stream before the server does
