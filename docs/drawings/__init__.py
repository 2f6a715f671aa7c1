"""The drawings of the documentation, made from the tables that the code uses: `python -m docs.drawings` writes them.

svg        boxes, arrows and text in two themes
graphs     states and the arrows between them
states     the states of a job, from TRANSITIONS
readiness  what a live job waits for, from READINESS
attempts   the life of an attempt, from its table
policies   how many jobs of a key may be in each state
way        the way of one job, with the statements it meets
leases     the times of a lease, from its machine
crash      a crash between a commit and a message

Each drawing is a file for light pages and one for dark ones. They are committed: a site must not depend on how it was
built, and a reader of the repository sees them. tests/docs/test_drawings.py fails if one is not up to date.
"""

from collections.abc import Callable, Iterator

from docs.drawings.attempts import draw_running_attempts, draw_settling_attempts
from docs.drawings.crash import CRASH_DRAWINGS
from docs.drawings.leases import draw_lease
from docs.drawings.policies import POLICY_DRAWINGS
from docs.drawings.readiness import draw_readiness
from docs.drawings.states import draw_states
from docs.drawings.svg import THEMES, Theme
from docs.drawings.way import draw_way

__all__ = ["DRAWINGS", "make_drawings"]

DRAWINGS: dict[str, Callable[[Theme], str]] = {
    "states": draw_states,
    "readiness": draw_readiness,
    "attempts-running": draw_running_attempts,
    "attempts-settling": draw_settling_attempts,
    "way": draw_way,
    "lease": draw_lease,
    **CRASH_DRAWINGS,
    **POLICY_DRAWINGS,
}
"""By name: the function that draws it in a theme."""


def make_drawings() -> Iterator[tuple[str, str]]:
    """The name of each file, and its text."""
    for name, draw in DRAWINGS.items():
        for theme in THEMES:
            yield f"{name}-{theme.name}.svg", draw(theme)
