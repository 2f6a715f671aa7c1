"""The dashboard in a real browser: every page and every action, beside a worker that runs."""

import re

import pytest
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
    "queues/orders~paid/keys": "Keys",
    "queues/orders~paid/key?key=customer%207": "customer 7",
    "queues/email/confirm?action=delete&state=failed": re.compile("Delete . jobs"),
    "queues/dead~letters/redrive": re.compile("Redrive . dead letter"),
    "queues/email/send": "Send a job",
    "schedules": "Schedules",
    "workers": "Workers",
    "events": "Events",
    "audit": "Audit",
    "pipeline": "Pipeline",
}


def until(page, condition, argument=None):
    """Wait until a condition, in the language of the browser, is true."""
    page.wait_for_function(condition, arg=argument)


def text_of(page, selector="main"):
    return page.inner_text(selector)


# Foreground and background of every text, with the background that is really behind it.
CONTRAST = """() => {
    const channel = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    const parse = (c) => c.match(/[0-9.]+/g).map(Number);
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const behind = (e) => {
        for (; e; e = e.parentElement) {
            const c = parse(getComputedStyle(e).backgroundColor);
            if (c.length === 3 || c[3] > 0.5) return c;
        }
        return [255, 255, 255];
    };
    const poor = [];
    for (const element of document.querySelectorAll("body *")) {
        const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
        if (!own || element.closest("svg") || !element.offsetParent || element.matches(":disabled")) continue;
        const style = getComputedStyle(element);
        const opacity = Number(style.opacity), back = behind(element);
        const front = parse(style.color).slice(0, 3).map((v, i) => v * opacity + back[i] * (1 - opacity));
        const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        const large = parseFloat(style.fontSize) >= 24;
        if (ratio < (large ? 3 : 4.5)) poor.push(`${element.tagName}.${element.className}: ${ratio.toFixed(2)}`);
    }
    return [...new Set(poor)];
}"""


@pytest.mark.parametrize("path", PAGES, ids=str)
def test_every_page_shows_in_both_schemes_with_contrast_and_fits_a_phone(page, site, path):
    page.goto(site.url + path)
    heading = page.text_content("h1").strip()
    assert heading == PAGES[path] if isinstance(PAGES[path], str) else PAGES[path].match(heading)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(CONTRAST) == [], scheme
    page.set_viewport_size({"width": 375, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_a_new_job_is_seen_without_a_reload(page, site):
    """How often a page is read is tested by its clock: test_live_pages.py."""
    page.goto(site.url)
    row = "tr:has(a:text-is('imports'))"
    page.wait_for_selector(".live")
    before = int(page.inner_text(f"{row} td:nth-child(3)"))
    site.boss.send("imports", {"row": "new"})
    until(
        page,
        "([row, n]) => [...document.querySelectorAll('tr')].some("
        "tr => tr.innerText.includes('imports') && tr.children[2].innerText == n)",
        ["imports", str(before + 1)],
    )


def test_progress_is_seen_live(page, site):
    (job,) = site.boss.find_jobs("slow", state="active")
    page.goto(f"{site.url}queues/slow/jobs/{job.id}")
    assert "40 %" in text_of(page)
    assert "It has been running since" in text_of(page)
    site.execute(
        "update trioboss.live_job set notes = jsonb_build_object('progress', 0.75) where id = %s", job.id
    )
    until(page, "() => document.body.innerText.includes('75 %')")


def test_an_open_stack_stays_open_while_the_job_is_live(page, site):
    (job,) = site.boss.find_jobs("webhooks", state="retry")
    page.goto(f"{site.url}queues/webhooks/jobs/{job.id}")
    page.wait_for_selector(".live")
    page.click(".timeline details summary")
    site.execute("update trioboss.live_job set priority = 77 where id = %s", job.id)
    until(page, "() => document.querySelector('.settings').innerText.includes('77')")

    assert page.locator(".timeline details[open]").count() == 1


def test_the_page_of_a_deleted_job_says_so_and_ends(page, site):
    id = site.boss.send("imports", {"row": "deleted"})
    page.goto(f"{site.url}queues/imports/jobs/{id}")
    page.wait_for_selector(".live")
    site.boss.delete_job("imports", id)
    page.wait_for_selector("#done:not([hidden])")

    assert f"There is no job {id}" in text_of(page, "#done")
    assert text_of(page, "#live-toggle") == "Deleted"


def test_the_day_before_is_that_of_the_reader(page, site):
    page.goto(f"{site.url}queues/email/jobs")
    page.click(".chips a:text-is('yesterday')")
    since, until = (page.input_value(f"input[name={name}]") for name in ("since", "until"))

    assert re.search(r"T0[45]:00:00", since)  # New York
    assert since < until


def test_a_page_in_the_background_stops_and_goes_on(page, site):
    page.goto(site.url)
    page.wait_for_selector(".live")
    page.click("#live-toggle")
    assert text_of(page, "#live-toggle") == "Paused"
    until(page, "() => document.querySelector('#live-toggle').getAttribute('aria-pressed') === 'false'")
    page.keyboard.press("l")
    page.wait_for_selector(".live")
    # What a browser does when the tab is hidden.
    hide = "document.dispatchEvent(new Event('visibilitychange'))"
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.evaluate(hide)
    with page.expect_request(lambda request: "text/event-stream" in request.headers.get("accept", "")):
        page.evaluate("Object.defineProperty(document, 'hidden', {value: false, configurable: true})")
        page.evaluate(hide)


def test_times_are_those_of_the_reader_with_utc_for_the_pointer(page, site):
    page.goto(f"{site.url}queues/email/jobs?state=failed")
    page.click("td.mono a")
    first = page.locator("ol.timeline time").first
    written, title = first.text_content(), first.get_attribute("title")
    hour, there = int(title[11:13]), int(re.search(r"(\d+):", written)[1])

    assert title.endswith(" UTC")
    assert (hour - there) % 24 in (4, 5)  # New York


def test_it_works_without_a_script(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site.url)
    assert page.locator("meta[http-equiv=refresh]").count() == 1
    page.click("a:text-is('email')")
    page.click("a.button:text-is('Jobs')")
    page.click(".chips a:text-is('failed')")
    assert "CardDeclined" in text_of(page)
    context.close()


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


def test_the_failures_of_one_class_are_retried(page, site):
    page.goto(f"{site.url}queues/email")
    page.click("a:has-text('CardDeclined')")
    page.fill("input[name=since]", "24h")
    page.click("button:text-is('Filter')")
    page.click("a:has-text('everything this filter matches')")
    assert page.inner_text("h1") == "Retry 3 jobs?"
    page.click("button.primary")
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


def test_a_selection_stays_while_the_page_is_live(page, site):
    page.goto(f"{site.url}queues/imports/jobs")
    page.wait_for_selector(".live")
    page.locator("tbody input[type=checkbox]").nth(3).check()
    page.evaluate("window.received = 0")
    page.evaluate("new EventSource(location.href).onmessage = () => { window.received += 1; }")
    site.boss.send("imports", {"row": "later"})
    until(page, "() => window.received >= 2")  # the page has received the change, too
    until(page, "() => document.querySelector('#live-toggle').innerText === 'Live, table held'")
    assert page.locator("tbody input[type=checkbox]:checked").count() == 1


def test_jobs_are_deleted_only_with_the_name_of_the_queue(page, site):
    site.boss.create_queue("trash")
    site.boss.insert("trash", [{}] * 3)
    page.goto(f"{site.url}queues/trash/confirm?action=delete&state=queued")
    page.fill("input[name=confirm]", "trash can")
    page.click("button.danger")
    assert "type the name of the queue" in text_of(page)
    page.problems.clear()  # the browser reports the refusal as an error
    page.go_back()
    page.fill("input[name=confirm]", "trash")
    page.click("button.danger")
    page.wait_for_selector("#done:not([hidden])")
    assert site.boss.find_jobs("trash") == []


def test_many_jobs_are_changed_while_a_bar_shows_how_far_it_is(page, site):
    site.boss.create_queue("many")
    site.boss.insert("many", [{}] * 2300)
    page.goto(f"{site.url}queues/many/jobs")
    page.click("a:has-text('everything this filter matches')")
    page.click(".tabs a:text-is('priority')")
    page.fill("input[name=priority]", "5")
    page.click("button.primary")
    page.wait_for_selector("#done:not([hidden])")

    assert text_of(page, "#done") == "Priority: 2,300 of 2,300 jobs changed"
    assert {job.priority for job in site.boss.find_jobs("many", limit=3000)} == {5}


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
            page.goto(reading.url + path)
            assert page.locator("form[method=post]").count() == 0, path
        page.goto("about:blank")  # ends its stream before the server does
