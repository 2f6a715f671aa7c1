"""`python -m tests.chaos`: the chaos run as a command. The tests have a quick one (test_chaos.py)."""

import sys

from tests.chaos.harness.command import main

if __name__ == "__main__":
    sys.exit(main())
