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
START = """
import os, threading, time
from pathlib import Path
from trioboss.pipeline.priority import give_way
give_way({niceness})
give_way({niceness})
nudges = [thread.native_id for thread in threading.enumerate() if thread.name.startswith("nudge")]
"""
SHOW_NUDGES = (
    START
    + """
while any(len(os.sched_getaffinity(nudge)) > 1 for nudge in nudges):
    time.sleep(0.001)  # they are on their way to their cores
print(sorted((*os.sched_getaffinity(nudge), os.getpriority(os.PRIO_PROCESS, nudge)) for nudge in nudges))
"""
)
COUNT_NUDGES = (
    START.format(niceness=1)
    + """
status = Path(f"/proc/self/task/{nudges[0]}/status")
def count():
    return int(status.read_text().rpartition("\\nvoluntary_ctxt_switches:")[2].split()[0])
while count() < 20:
    time.sleep(0.001)
print("woken up again and again")
"""
)
GROUP = Path("/proc/self/autogroup")
SHOW_GROUP = "print(open('/proc/self/autogroup').read())"


def run(program, **more):
    command = [sys.executable, "-c", program]
    return subprocess.run(command, text=True, capture_output=True, check=True, timeout=60, **more).stdout


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


@pytest.mark.skipif(sys.platform != "linux", reason="what is nudged is the scheduler of Linux")
def test_whoever_is_nice_nudges_each_core_by_a_thread_that_is_not():
    shown = run(SHOW_NUDGES.format(niceness=1))

    assert shown == f"{sorted((core, os.nice(0)) for core in os.sched_getaffinity(0))}\n"


def test_whoever_is_not_nice_nudges_nobody():
    assert run(SHOW_NUDGES.format(niceness=0)) == "[]\n"


@pytest.mark.skipif(sys.platform != "linux", reason="what is nudged is the scheduler of Linux")
def test_nudges_go_on():
    assert run(COUNT_NUDGES) == "woken up again and again\n"
