"""Debian's Chromium, driven by Playwright's Python package."""

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
