"""The page of a report: complete in itself, readable by everybody, and no text of a job can become a part of it."""

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from trioboss.charts.numbers import change, count, duration, length, percent, short_count
from trioboss.charts.svg import Axis, Series, curves
from trioboss.pipeline.page import Before, Report, render_page

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
            {"source": text, "dead_letter": text, "sent": 3, "completed": 1, "not_completed": 0} | seen
        ],
        before=Before(
            timedelta(hours=hours), [queue | wasted | ends | MEASURES | {"jobs": 10, "wait_p95": 2.0}]
        ),
    )


class Outline(HTMLParser):
    """The elements and attributes of a page, and whether all that was opened was closed."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.attributes, self.open, self.text = set(), set(), [], ""
        self.tags = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.tags.append((tag, dict(attrs)))
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


@pytest.mark.parametrize(
    ("longest", "labels"),
    [
        (0.3, ["250 ms", "500 ms"]),
        (1.5, ["1 s", "2 s"]),
        (290, ["5 min", "10 min"]),
        (3000, ["30 min", "1 h"]),
        (90_000, ["24 h", "2 d"]),
    ],
)
def test_the_scale_of_durations_has_those_that_people_use(longest, labels):
    axis = Axis([HOUR], timedelta(hours=1), 390, 140)
    drawn = curves(axis, [Series("wait", "accent", [longest])], duration, "times")

    assert re.findall(r'text-anchor="end">([^<]+)<', drawn) == ["0", *labels]


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


# -- for everybody


def test_every_chart_is_described_for_people_who_do_not_see_it():
    charts = [attrs for tag, attrs in Outline(render_page(make_report("email"))).tags if tag == "svg"]

    assert len(charts) > 5
    assert all(chart["role"] == "img" and chart["aria-label"] for chart in charts)
    assert charts[0]["aria-label"].startswith(
        "Jobs in every hour. completed: 4 to 4, highest at 2 Mar 09:00; retried:"
    )
    assert {
        "Waits of email. p95 wait: 1 s to 1 s, highest at 2 Mar 09:00; "
        "p50 wait: 100 ms to 100 ms, highest at 2 Mar 09:00"
    } <= {chart["aria-label"] for chart in charts}


def test_the_numbers_of_the_main_chart_are_a_table_too():
    page = render_page(make_report("email"))

    assert '<caption class="hidden">The numbers of the chart</caption>' in page
    assert '<th scope="row" class="when">2 Mar 10:00</th><td class="number">4</td>' in page


def test_every_table_has_a_caption_and_headings_for_columns_and_rows():
    outline = Outline(render_page(make_report("email")))
    count_of = {name: sum(tag == name for tag, _ in outline.tags) for name in ("table", "caption", "thead")}

    assert count_of["table"] == count_of["caption"] == count_of["thead"] > 4
    assert all(attrs.get("scope") in ("col", "row") for tag, attrs in outline.tags if tag == "th")


def schemes():
    """The colours of the light and of the dark scheme, by name."""
    style = files("trioboss.charts").joinpath("static", "charts.css").read_text("utf-8")
    light, dark, _ = re.findall(r":root[^{]*\{([^}]*--paper.*?)\}", style, re.DOTALL)
    colours = [dict(re.findall(r"--(\w+): (#\w{6});", block)) for block in (light, dark)]
    return zip(("light", "dark"), colours, strict=True)


def contrast(one, other):
    """The contrast of two colours, as WCAG 2 defines it: from 1 to 21."""

    def luminance(colour):
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("scheme", "colours"), list(schemes()))
def test_contrasts_are_those_of_wcag_aa(scheme, colours):
    texts = [(text, ground) for text in ("ink", "muted") for ground in ("paper", "card")] + [("bad", "card")]
    graphics = [(name, "card") for name in ("good", "bad", "warm", "calm", "accent", "heat")]

    too_low = [pair for pair in texts if contrast(colours[pair[0]], colours[pair[1]]) < 4.5]
    too_low += [pair for pair in graphics if contrast(colours[pair[0]], colours[pair[1]]) < 3]

    assert too_low == []


def test_no_text_depends_on_the_scheme():
    """In the dark scheme a strong colour is a light one."""
    text = Outline(render_page(make_report("email"))).text

    assert not re.search(r"\b(dark|light)(er|est)?\b", text.rpartition("}")[2])


def test_the_scale_of_the_heat_map_has_the_colours_of_its_cells():
    page = render_page(make_report("email"))

    assert '<span>0 %</span><i class="heat step0" aria-hidden="true"></i>' in page
    assert '<i class="heat step4" aria-hidden="true"></i><span>50 %</span>' in page


# -- comparison


def test_a_report_is_compared_with_the_period_before():
    page = render_page(make_report("email"))

    assert "Compared with the 3 hours before." in page
    assert "<em>+50 % since the 3 hours before</em>" in page  # 15 jobs, 10 before
    assert "<b>1 s (\N{MINUS SIGN}50 %)</b>" in page  # the wait of the queue


def test_changes_read_as_people_write_them():
    assert [change(*pair) for pair in ((15, 10), (5, 10), (10, 10), (5, 0), (None, 3), (5, None))] == [
        "+50 %", "\N{MINUS SIGN}50 %", "no change", None, None, None,
    ]  # fmt: skip
    assert [length(timedelta(hours=hours)) for hours in (1, 24, 36, 168)] == [
        "1 hour",
        "24 hours",
        "36 hours",
        "7 days",
    ]
