"""The script of the dashboard in a real browser: live pages, times, selections; and pages without it."""

import re
import time
from urllib.parse import parse_qs, urlsplit

import pytest
from browser_helpers import CONTRAST, text_of, until

pytestmark = pytest.mark.xdist_group("browser")  # one browser, and one site


# -- live pages


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


def test_the_output_of_a_job_is_seen_live(page, site):
    """After "Send a job" a person is on this page."""
    site.boss.create_queue("made")
    id = site.boss.send("made", {"n": 1})
    page.goto(f"{site.url}queues/made/jobs/{id}")
    page.wait_for_selector(".live")
    assert "Output none" in text_of(page)
    page.click("summary:has-text('Data')")  # folds it
    site.boss.complete("made", site.boss.fetch("made"), {"result": 42})
    until(page, "() => document.querySelector('#live-payload').innerText.includes('42')")

    assert page.locator("#live-payload details").evaluate_all("all => all.map(each => each.open)") == [
        False,
        True,
    ]


def test_a_queue_that_another_person_pauses_offers_to_unpause_it(page, site):
    site.boss.create_queue("shared")
    page.goto(f"{site.url}queues/shared")
    page.wait_for_selector(".live")
    site.boss.pause("shared")
    page.wait_for_selector("button:text-is('Unpause queue')")

    assert page.locator("h1 ~ .tags .badge.paused").count() == 1


def list_ids(page):
    return page.eval_on_selector_all("td.mono a", "all => all.map(each => each.title)")


def test_a_live_list_leads_to_the_jobs_that_follow_those_it_shows(page, site):
    """Although the list was opened when it had none, and many have come since."""
    site.boss.create_queue("flow")
    page.goto(f"{site.url}queues/flow/jobs")
    page.wait_for_selector(".live")
    assert page.locator("a:text-is('Older')").count() == 0
    first = site.boss.insert("flow", [{}] * 60, return_ids=True)
    page.wait_for_selector("a:text-is('Older')")
    second = site.boss.insert("flow", [{}] * 70, return_ids=True)
    newest = sorted(map(str, [*first, *second]), reverse=True)
    until(page, "id => document.querySelector('td.mono a').title === id", newest[0])
    assert list_ids(page) == newest[:50]
    page.click("a:text-is('Older')")
    page.wait_for_selector("a:text-is('Newest')")

    assert list_ids(page) == newest[50:100]


def test_a_stream_that_was_refused_is_asked_for_again(page, site):
    """A browser does not do that by itself after an error of HTTP, as a proxy gives it."""
    asked, refused = [], []

    def answer(route):
        if "text/event-stream" in route.request.headers.get("accept", ""):
            asked.append(route.request.url)
            if len(refused) < 2:
                refused.append(route.request.url)
                return route.fulfill(status=502, body="bad gateway")
        return route.continue_()

    page.clock.install()
    page.route("**/*", answer)
    page.goto(site.url)
    until(page, "() => document.querySelector('#live-toggle').innerText === 'Connecting'")
    limit = time.monotonic() + 60
    while len(asked) < 3:
        # More than once: the page may not have noticed the refusal yet, and then waits from that moment on.
        page.clock.fast_forward(5000)
        assert time.monotonic() < limit
    page.wait_for_selector("#live-toggle.live")

    assert len(refused) == 2
    page.problems.clear()  # the browser reports both


def test_the_focus_stays_on_the_same_button_of_many(page, site):
    site.boss.create_queue("timed")
    for key in ("a", "b", "c"):
        site.execute(
            "insert into trioboss.schedule (queue, key, cron) values ('timed', %s, '0 0 1 1 *')", key
        )
    page.goto(f"{site.url}schedules?text=timed")
    page.wait_for_selector(".live")
    page.locator("tr:has-text('b') button:text-is('Pause')").focus()
    site.execute("update trioboss.schedule set cron = '0 0 2 2 *' where queue = 'timed' and key = 'a'")
    until(page, "() => document.querySelector('tbody').innerText.includes('0 0 2 2 *')")

    assert page.evaluate("document.activeElement.closest('tr').children[0].innerText") == "timed b"
    assert page.evaluate("document.activeElement.innerText") == "Pause"


def test_the_page_of_a_deleted_job_says_so_and_ends(page, site):
    id = site.boss.send("imports", {"row": "deleted"})
    page.goto(f"{site.url}queues/imports/jobs/{id}")
    page.wait_for_selector(".live")
    site.boss.delete_job("imports", id)
    page.wait_for_selector("#done:not([hidden])")

    assert f"There is no job {id}" in text_of(page, "#done")
    assert text_of(page, "#live-toggle") == "Deleted"


def test_a_page_in_the_background_stops_and_goes_on(page, site):
    page.goto(site.url)
    page.wait_for_selector(".live")
    page.click("#live-toggle")
    assert text_of(page, "#live-toggle") == "Paused"
    until(page, "() => document.querySelector('#live-toggle').getAttribute('aria-pressed') === 'false'")
    page.keyboard.press("l")
    page.wait_for_selector(".live")
    # A browser does this when the tab is hidden.
    hide = "document.dispatchEvent(new Event('visibilitychange'))"
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.evaluate(hide)
    with page.expect_request(lambda request: "text/event-stream" in request.headers.get("accept", "")):
        page.evaluate("Object.defineProperty(document, 'hidden', {value: false, configurable: true})")
        page.evaluate(hide)


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


# -- times


def test_times_are_those_of_the_reader_with_utc_for_the_pointer(page, site):
    page.goto(f"{site.url}queues/email/jobs?state=failed")
    page.click("td.mono a")
    first = page.locator("ol.timeline time").first
    written, title = first.text_content(), first.get_attribute("title")
    hour, there = int(title[11:13]), int(re.search(r"(\d+):", written)[1])

    assert title.endswith(" UTC")
    assert (hour - there) % 24 in (4, 5)  # New York


def test_times_under_the_pointer_of_a_chart_are_those_of_the_reader_with_utc(page, site):
    page.goto(f"{site.url}queues/email")
    title = page.locator("#live-history .hover title").first.text_content()
    lines = title.split("\n")
    hour, there = (int(re.search(r"(\d+):\d+", line)[1]) for line in (lines[-1], lines[0]))

    assert lines[-1].endswith(" UTC")
    assert (hour - there) % 24 in (4, 5)  # New York
    page.wait_for_selector(".live")  # the parts were replaced, and written again
    assert page.locator("#live-history .hover title[data-time]").count() == 0


def test_the_day_before_is_that_of_the_reader(page, site):
    page.goto(f"{site.url}queues/email/jobs")
    page.click(".chips a:text-is('yesterday')")
    since, until = (page.input_value(f"input[name={name}]") for name in ("since", "until"))

    assert since.endswith("T00:00")  # as the clock of New York has it
    assert until.endswith("T00:00")
    assert since < until
    assert re.search(r"since=[^&]*T0[45]%3A00%3A00", page.url)  # in UTC


def test_the_day_that_was_chosen_stays_marked(page, site):
    page.goto(f"{site.url}queues/email/jobs")
    page.click(".chips a:text-is('today')")
    page.click(".chips a:text-is('failed')")
    page.wait_for_url("**state=failed**")

    marked = page.locator(".chips[aria-label=Time] a[aria-current]").all_inner_texts()
    assert marked == ["today"]


def test_a_time_in_a_filter_is_that_of_the_reader(page, site):
    page.goto(f"{site.url}queues/email/jobs")
    assert "Since, your time" in text_of(page, ".filters")
    page.fill("input[name=since]", "2026-01-15 12:30")
    page.fill("input[name=until]", "24h")
    page.click("button:text-is('Filter')")
    page.wait_for_url("**since=**")
    query = parse_qs(urlsplit(page.url).query)
    assert query["since"] == ["2026-01-15T17:30:00.000Z"]  # New York, in winter
    assert query["until"] == ["24h"]
    assert page.input_value("input[name=since]") == "2026-01-15T12:30"
    page.click("button:text-is('Filter')")
    page.wait_for_load_state()

    assert parse_qs(urlsplit(page.url).query)["since"] == query["since"]


def test_a_job_is_sent_for_a_time_of_the_reader(page, site):
    site.boss.create_queue("later")
    page.goto(f"{site.url}queues/later/send")
    page.fill("input[name=start_after]", "2030-07-01T09:00")
    page.click("button.primary")
    page.wait_for_url("**/jobs/*")
    (job,) = site.boss.find_jobs("later")

    assert job.start_after.isoformat() == "2030-07-01T13:00:00+00:00"  # New York, in summer
    assert "Jul 1, 2030" in text_of(page)


# -- filters with anything in them


def test_a_key_with_invisible_characters_is_acted_on(page, site):
    """It goes through an address, a page, a form and a page again."""
    site.boss.create_queue("odd-keys")
    for key in ("a\u200db", "a\nb", "ab"):
        site.boss.send("odd-keys", singleton_key=key)
    for key in ("a%E2%80%8Db", "a%0Ab"):
        page.goto(f"{site.url}queues/odd-keys/confirm?action=cancel&key={key}")
        assert page.inner_text("h1") == "Cancel 1 job?"
        page.click("button.primary")
        page.wait_for_selector("#done:text-is('Cancel: 1 of 1 job changed')")

    assert [job.singleton_key for job in site.boss.find_jobs("odd-keys", state="created")] == ["ab"]


# -- without the script


@pytest.fixture
def plain(browser):
    """A tab in which no script runs."""
    context = browser.new_context(java_script_enabled=False)
    context.set_default_timeout(20_000)
    yield context.new_page()
    context.close()


def test_pages_lead_to_each_other_without_a_script(plain, site):
    plain.goto(site.url)
    assert plain.locator("meta[http-equiv=refresh]").count() == 1
    plain.click("a:text-is('webhooks')")
    plain.click("a.button:text-is('Jobs')")
    plain.click(".chips a:text-is('retry')")
    assert "ConnectionError" in text_of(plain)
    assert not plain.is_visible("#select-all")  # it would do nothing


def test_a_list_of_jobs_is_refreshed_without_a_script_until_jobs_are_selected(plain, site):
    plain.goto(f"{site.url}queues/imports/jobs?state=queued")
    assert plain.locator("meta[http-equiv=refresh]").count() == 1
    assert not plain.is_visible("button:text-is('Cancel')")
    assert not plain.is_visible("tbody input[type=checkbox] >> nth=0")
    plain.click("a:text-is('Select jobs')")
    assert plain.locator("meta[http-equiv=refresh]").count() == 0
    plain.check("tbody input[type=checkbox] >> nth=0")
    plain.click("button:text-is('Priority')")
    assert plain.inner_text("h1") == "Priority 1 job?"
    plain.click("a:text-is('Back')")
    assert plain.url == f"{site.url}queues/imports/jobs?state=queued"


def test_every_action_on_jobs_works_without_a_script(plain, site):
    site.boss.create_queue("plain", retry_limit=0)
    site.boss.insert("plain", [{"start_after": 3600}] * 3)
    steps = [
        ("queued", "priority", {"priority": "7"}, {"priority": 7}),
        ("deferred", "run-now", {}, {"readiness": "ready"}),
        ("ready", "cancel", {}, {"state": "cancelled"}),
        ("cancelled", "resume", {}, {"readiness": "ready"}),
        ("failed", "retry", {}, {"state": "retry"}),
        ("queued", "delete", {"confirm": "plain"}, None),
    ]
    for state, action, typed, _ in steps:
        if action == "retry":
            site.boss.fail("plain", site.boss.fetch("plain", batch_size=3), ValueError("x"))
        plain.goto(f"{site.url}queues/plain/jobs?state={state}&select=1")
        for box in plain.locator("tbody input[type=checkbox]").all():
            box.check()
        plain.click(f".bar button[value={action}]")
        for name, value in typed.items():
            plain.fill(f"input[name={name}]", value)
        plain.click("form.ask button[type=submit]")
        label = action.replace("-", " ").capitalize()
        assert text_of(plain, "#done") == f"{label}: 3 of 3 jobs changed"

    assert site.boss.find_jobs("plain") == []


def test_every_other_action_works_without_a_script(plain, site):
    site.boss.create_queue("plain-dead")
    site.boss.create_queue("plainer", dead_letter="plain-dead", retry_limit=0)
    site.execute("insert into trioboss.schedule (queue, key, cron) values ('plainer', 'k', '0 0 1 1 *')")
    plain.goto(f"{site.url}queues/plainer")
    plain.click("button:text-is('Pause queue')")
    plain.click("button:text-is('Unpause queue')")
    plain.click("a:text-is('Send a job')")
    plain.fill("textarea", '{"n": 1}')
    plain.click("button:text-is('Send')")
    assert "No worker takes jobs of its queue" in text_of(plain)
    site.boss.fail("plainer", site.boss.fetch("plainer"), ValueError("x"))
    plain.goto(f"{site.url}queues/plain-dead/redrive")
    plain.click("button:text-is('Redrive 1')")
    assert text_of(plain, "#done") == "Redrive: 1 of 1 job changed"
    plain.goto(f"{site.url}schedules?text=plainer")
    plain.click("button:text-is('Pause')")
    plain.click("button:text-is('Unpause')")
    assert plain.url == f"{site.url}schedules?text=plainer"
    plain.click("button:text-is('Run now')")
    assert re.search("/queues/plainer/jobs/[0-9a-f-]{36}$", plain.url)


def test_many_jobs_are_counted_and_changed_without_a_script(plain, site):
    site.boss.create_queue("plain-many")
    site.boss.insert("plain-many", [{}] * 1500)
    plain.goto(f"{site.url}queues/plain-many/jobs?state=queued")
    plain.click("a:has-text('everything this filter matches')")
    plain.click("button:text-is('Cancel 1,500')")
    assert plain.inner_text("h1") == "Cancel: 1,000 jobs so far"
    for scheme in ("light", "dark"):
        plain.emulate_media(color_scheme=scheme)
        assert plain.evaluate(CONTRAST) == [], scheme
    plain.set_viewport_size({"width": 320, "height": 700})
    assert plain.evaluate("document.documentElement.scrollWidth") <= 320
    plain.click("button:text-is('Go on')")
    assert text_of(plain, "#done") == "Cancel: 1,500 of 1,500 jobs changed"
