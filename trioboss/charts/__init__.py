"""Charts and numbers for people, shared by the dashboard and the report of the pipeline, so that there is one of each.

svg       bars, curves, heat maps and sparklines as SVG
elements  HTML and SVG as values, with everything else escaped
numbers   numbers, durations and times as people write them

static/charts.css has the colours and the style of charts.
"""
