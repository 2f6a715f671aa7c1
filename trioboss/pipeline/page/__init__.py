"""The report as one HTML page: no script, no address outside of it, in the light or dark scheme of the reader.

report    the rows that a page shows
render    the page from its title to its footer
sections  its sections
charts    charts in SVG, with a description for people who do not see them
tables    its tables
numbers   numbers, durations and times as people write them
elements  HTML and SVG as values, escaped
"""

from trioboss.pipeline.page.render import render_page
from trioboss.pipeline.page.report import Before, Report

__all__ = ["Before", "Report", "render_page"]
