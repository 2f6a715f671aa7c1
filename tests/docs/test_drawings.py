"""The drawings are up to date, and what they show of policies is what the database does."""

from pathlib import Path
from xml.etree import ElementTree

import psycopg
import pytest

from docs.drawings import make_drawings
from docs.drawings.policies import LIMITS
from trioboss import Policy
from trioboss.model.policy import KEYED

FOLDER = Path(__file__).parent.parent.parent / "docs" / "drawings"
MADE = dict(make_drawings())


@pytest.mark.parametrize("name", MADE)
def test_a_drawing_is_up_to_date(name):
    assert (FOLDER / name).read_text("utf-8") == MADE[name], "`python -m docs.drawings` draws it again"


def test_there_are_no_others():
    assert {file.name for file in FOLDER.glob("*.svg")} == set(MADE)


@pytest.mark.parametrize("name", MADE)
def test_a_drawing_stays_within_its_frame_and_has_a_title(name):
    root = ElementTree.fromstring(MADE[name])
    width, height = float(root.get("width")), float(root.get("height"))
    texts = [element for element in root if element.tag.endswith("}text")]

    assert root[0].tag.endswith("}title")
    assert root[0].text
    assert all(0 <= float(text.get("x")) <= width for text in texts)
    assert all(0 <= float(text.get("y")) <= height for text in texts)


def test_every_drawing_is_shown_in_both_themes():
    pages = "\n".join(page.read_text("utf-8") for page in FOLDER.parent.rglob("*.md"))

    assert [name for name in MADE if f"drawings/{name}\n" not in pages] == []


def test_policies_allow_what_is_drawn(dsn):
    with psycopg.connect(dsn) as conn:
        for policy in Policy:
            limits = LIMITS[policy]
            created, retry = (
                conn.execute("SELECT trioboss.queued_slot(%s, 'k', %s)", (policy.value, attempt)).fetchone()[
                    0
                ]
                for attempt in (0, 1)
            )

            assert limits.created == (created is not None)
            assert (limits.retry and not limits.keeps_key) == (retry is not None)
            assert limits.in_all == (created is not None and created == retry)
            assert limits.active == (policy in KEYED or limits.in_all)
            assert limits.keeps_key == (policy is Policy.KEY_STRICT_FIFO)
