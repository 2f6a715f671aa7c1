"""Writes all drawings beside this file."""

from pathlib import Path

from docs.drawings import make_drawings

for name, text in make_drawings():
    Path(__file__).with_name(name).write_text(text, "utf-8")
