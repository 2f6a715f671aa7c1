"""Background work runs at a low priority."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from trioboss.pipeline.low_priority import lower_priority

LOWER = """
import os
from trioboss.pipeline.low_priority import lower_priority
before = os.nice(0)
lower_priority(5)
lower_priority(3)
print(os.nice(0) - max(before, 5))
"""
AUTOGROUP = Path("/proc/self/autogroup")
SHOW_GROUP = "print(open('/proc/self/autogroup').read())"


def run(program, **more):
    command = [sys.executable, "-c", program]
    return subprocess.run(command, text=True, capture_output=True, check=True, timeout=60, **more).stdout


def test_a_process_gets_the_nice_value_that_is_asked_for_and_never_a_lower_one():
    assert run(LOWER) == "0\n"


def test_a_session_of_its_own_gets_the_nice_value_of_its_process():
    if not AUTOGROUP.exists():
        pytest.skip("this kernel does not weigh sessions against each other")

    shown = run(LOWER + SHOW_GROUP, start_new_session=True)

    assert f"nice {max(os.nice(0), 5)}" in shown


def test_a_session_that_others_share_stays_as_it_is():
    if not AUTOGROUP.exists():
        pytest.skip("this kernel does not weigh sessions against each other")
    before = AUTOGROUP.read_text()

    run(LOWER)

    assert AUTOGROUP.read_text() == before


def test_no_thread_is_started_for_it():
    before = threading.active_count()

    lower_priority(0)

    assert threading.active_count() == before
