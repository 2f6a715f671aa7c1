"""Background work gives way to other processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

GIVE_WAY = """
import os
from trioboss.pipeline.priority import give_way
before = os.nice(0)
give_way(5)
give_way(3)
print(os.nice(0) - max(before, 5))
"""
GROUP = Path("/proc/self/autogroup")
CORES = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
SHOW_CORES = "import os; print(len(os.sched_getaffinity(0)))"
SHOW_GROUP = "print(open('/proc/self/autogroup').read())"


def run(program, **more):
    command = [sys.executable, "-c", program]
    return subprocess.run(command, text=True, capture_output=True, check=True, **more).stdout


def test_a_process_becomes_as_nice_as_asked_and_never_less():
    assert run(GIVE_WAY) == "0\n"


def test_a_session_of_its_own_becomes_as_nice_as_its_process():
    if not GROUP.exists():
        pytest.skip("this kernel does not weigh sessions against each other")

    shown = run(GIVE_WAY + SHOW_GROUP, start_new_session=True)

    assert f"nice {max(os.nice(0), 5)}" in shown


def test_a_session_that_others_share_stays_as_it_is():
    if not GROUP.exists():
        pytest.skip("this kernel does not weigh sessions against each other")
    before = GROUP.read_text()

    run(GIVE_WAY)

    assert GROUP.read_text() == before


@pytest.mark.skipif(CORES == 1, reason="there is only one core, or this system cannot be told which to use")
@pytest.mark.parametrize(("niceness", "left"), [(0, 0), (1, CORES // 2)])
def test_whoever_is_nice_leaves_half_of_the_cores_alone(niceness, left):
    shown = run(f"from trioboss.pipeline.priority import give_way\ngive_way({niceness})\n{SHOW_CORES}")

    assert int(shown) == CORES - left
