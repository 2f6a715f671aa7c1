"""The lines that a process wrote to its journal survive its death."""

import os
import signal
import subprocess
import sys

from tests.chaos.harness.journal import Journal, read_journals

WRITER = """
import sys
from tests.chaos.harness.journal import Journal
journal = Journal(sys.argv[1], "writer")
number = 0
while True:
    journal.write("line", number=number, text="x" * 500)
    if number == 200:
        print("many", flush=True)
    number += 1
"""


def test_a_journal_survives_the_death_of_its_writer(tmp_path):
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"many\n"
        writer.send_signal(signal.SIGKILL)
    numbers = [entry["number"] for entry in read_journals(tmp_path)]
    assert len(numbers) > 200
    assert numbers == list(range(len(numbers)))


def test_a_line_that_a_kill_has_cut_off_is_left_out(tmp_path):
    Journal(tmp_path, "killed").write("step", by=1)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes() + b'{"at": 1.0, "process": "kil')
    assert [entry["by"] for entry in read_journals(tmp_path)] == [1]


def test_journals_are_read_in_the_order_of_what_happened(tmp_path):
    one, other = Journal(tmp_path, "one"), Journal(tmp_path, "other")
    for journal in (one, other, one):
        journal.write("step", by=os.getpid())
    assert [entry["process"] for entry in read_journals(tmp_path)] == ["one", "other", "one"]
