"""The page of a report: complete in itself, and nothing that a job says can become a part of it."""

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

from trioboss.pipeline.page import Report, render_page
from trioboss.pipeline.page.words import count, duration, percent, short_count

HOSTILE = "</title><script>alert(1)</script>\"'><img src=x onerror=alert(1)>&amp;</svg></style>"
HOUR = datetime(2026, 3, 2, 9, tzinfo=UTC)
MEASURES = {"wait_p50": 0.1, "wait_p95": 1.0, "wait_p99": 2.0, "run_p50": 0.1, "run_p95": 1.0, "run_p99": 2.0}


def make_report(text, hours=3):
    """A report of one queue, with the text wherever a text can be."""
    counts = {"arrivals": 5, "completions": 4, "failures": 1, "cancellations": 0, "retries": 2, "releases": 0}
    rest = {"oldest_age": 3.0, "worker_seconds": 60.0, "concurrency": 1, "utilisation": 0.5}
    times = [HOUR + timedelta(hours=n) for n in range(hours)]
    queue = {"queue": text, "jobs": 15, "completed": 12, "failed": 3, "cancelled": 0, "attempts": 21}
    wasted = {"wasted_attempts": 9, "worker_seconds": 180.0, "wasted_seconds": 30.0}
    ends = {"failed_attempts": 6, "expired_attempts": 0, "lost_attempts": 1, "released_attempts": 2}
    seen = {"first_seen": HOUR, "last_seen": HOUR + timedelta(hours=1)}
    return Report(
        made_on=HOUR,
        source=text,
        first=times[0],
        last=times[-1],
        period=timedelta(hours=1),
        points=[{"queue": text, "time": time} | counts | MEASURES | rest for time in times],
        queues=[queue | wasted | ends | MEASURES],
        more_queues=2,
        errors=[
            {"queue": text, "fingerprint": text, "count": 3, "example": text + "!", "last_job": "x"} | seen
        ],
        keys=[{"queue": text, "singleton_key": text, "attempts": 3, "bad_ends": 0, "worker_seconds": 9.0}],
        slowest=[{"queue": text, "id": text, "run": 9.0, "wait": 1.0, "attempt": 1, "started_on": HOUR}],
        dead_letters=[
            {"source": text, "dead_letter": text, "letters": 3, "handled": 1, "given_up": 0} | seen
        ],
    )


class Outline(HTMLParser):
    """The elements and attributes of a page, and whether all that was opened was closed."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.attributes, self.open, self.text = set(), set(), [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_a_hostile_name_changes_nothing_but_the_text():
    calm, hostile = Outline(render_page(make_report("calm"))), Outline(render_page(make_report(HOSTILE)))

    assert hostile.elements == calm.elements
    assert hostile.attributes == calm.attributes
    assert not hostile.elements & {"script", "img", "iframe", "link", "object", "a"}
    assert not {name for name in hostile.attributes if name.startswith("on")}
    assert hostile.open == []
    assert HOSTILE in hostile.text


def test_the_page_needs_nothing_outside_of_itself():
    page = render_page(make_report("q"))

    assert not re.search(r"https?:|//[a-z]|url\(|@import|src=|href=", page)
    assert "default-src 'none'" in page


def test_a_history_without_jobs_says_so():
    empty = Report(HOUR, "a lake", None, None, timedelta(hours=1), [], [], 0, [], [], [], [])

    assert "No job ended in this time." in render_page(empty)


def test_the_charts_have_one_bar_an_hour_and_a_word_for_each():
    page = render_page(make_report("q", hours=5))

    assert page.count('<g class="good"><rect') == 2  # of all, and of the queue
    assert "2 Mar 13:00\ncompleted 4" in page


def test_a_line_of_one_point_is_wide_enough_to_be_seen():
    assert "m-5 0h10" in render_page(make_report("q", hours=1))


def test_numbers_read_as_people_write_them():
    assert [duration(s) for s in (0.0042, 0.84, 3.24, 240, 9000, 864_000)] == [
        "4.2 ms", "840 ms", "3.24 s", "4 min", "2.5 h", "10 d",
    ]  # fmt: skip
    assert [percent(p) for p in (0, 0.00001, 0.034, 0.99999, 1)] == [
        "0 %",
        "< 0.1 %",
        "3.4 %",
        "> 99.9 %",
        "100 %",
    ]
    assert [short_count(n) for n in (0, 999, 12_345, 3_000_000)] == ["0", "999", "12.3 k", "3 M"]
    assert count(12345) == "12,345"
