"""The report as one HTML page: no script, no address outside of it, light or dark as the reader's machine is."""

from trioboss.pipeline.page.render import render_page
from trioboss.pipeline.page.report import Report

__all__ = ["Report", "render_page"]
