"""Progress on standard error. Standard output has only the tables."""

import sys
import time

__all__ = ["log"]

_BEGAN = time.monotonic()


def log(text: str) -> None:
    """Print one line, with the seconds since the start."""
    print(f"[{time.monotonic() - _BEGAN:6.1f} s] {text}", file=sys.stderr, flush=True)
