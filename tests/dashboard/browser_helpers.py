"""Debian's Chromium, controlled by Playwright's Python package."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

REQUIRED = bool(os.environ.get("TRIOBOSS_REQUIRE_BROWSER"))
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]


# Texts and borders of fields that are too near to the colour that is really behind them.
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
    const compare = (...colours) => {
        const [a, b] = colours.map(light).sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);
    };
    for (const field of document.querySelectorAll("input:not([type=hidden]):not([type=checkbox]), textarea, select")) {
        const line = parse(getComputedStyle(field).borderTopColor);
        const ratio = Math.min(compare(line, behind(field)), compare(line, behind(field.parentElement)));
        if (field.offsetParent && ratio < 3) poor.push(`border of ${field.name}: ${ratio.toFixed(2)}`);
    }
    for (const element of document.querySelectorAll("body *")) {
        const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
        if (!own || element.closest("svg") || !element.offsetParent || element.matches(":disabled")) continue;
        const style = getComputedStyle(element);
        const opacity = Number(style.opacity), back = behind(element);
        const front = parse(style.color).slice(0, 3).map((v, i) => v * opacity + back[i] * (1 - opacity));
        const ratio = compare(front, back);
        const large = parseFloat(style.fontSize) >= 24;
        if (ratio < (large ? 3 : 4.5)) poor.push(`${element.tagName}.${element.className}: ${ratio.toFixed(2)}`);
    }
    return [...new Set(poor)];
}"""


def find_browser() -> str | None:
    """The program of the browser, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def open_browser() -> Iterator[Any]:
    """A browser without a window, for the length of a block."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


def until(page: Any, condition: str, argument: object = None) -> None:
    """Wait until a condition, in the language of the browser, is true."""
    page.wait_for_function(condition, arg=argument)


def text_of(page: Any, selector: str = "main") -> str:
    """The text that a person sees."""
    return str(page.inner_text(selector))
