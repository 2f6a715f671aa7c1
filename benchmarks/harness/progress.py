"""What is going on, on standard error: standard output has the tables only."""

import sys
import time

__all__ = ["say"]

_BEGAN = time.monotonic()


def say(text: str) -> None:
    """One line, with the seconds since the start."""
    print(f"[{time.monotonic() - _BEGAN:6.1f} s] {text}", file=sys.stderr, flush=True)
