"""The report as one HTML page: no script, no address outside of it, in the light or dark scheme of the reader.
Its charts, numbers and colours are those of the dashboard: trioboss/charts.

report    the rows that a page shows
render    the page from its title to its footer
sections  its sections
tables    its tables
"""

from trioboss.pipeline.page.render import render_page
from trioboss.pipeline.page.report import Before, Report

__all__ = ["Before", "Report", "render_page"]
