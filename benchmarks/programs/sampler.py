"""Where a process spends its CPU: one sample for each millisecond of CPU time, by layer and by function.

Python runs a signal handler only after the interrupted C function has returned, so the time of C code is counted for
the line that called it. The sampler finds the called function by the frame's instruction: calls of libpq and of
psycopg's generators are counted as psycopg's.
"""

import linecache
import re
import signal
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType

from psycopg import pq

__all__ = ["Sampler"]

_INTERVAL = 0.001
_CALLED = re.compile(r"(\w+)\s*\($")
_OF_LIBPQ = frozenset(
    name for kind in (pq.PGconn, pq.PGresult) for name in dir(kind) if not name.startswith("_")
)
_LAYERS = (
    (re.compile(r"/trioboss/postgres/"), "trioboss: postgres (the hot path)"),
    (re.compile(r"/trioboss/(\w+)(?:/|\.py)"), r"trioboss: \1"),
    (re.compile(r"/psycopg(?:_binary|_c)?/"), "psycopg and libpq"),
    (re.compile(r"/trio/"), "trio"),
    (re.compile(r"/benchmarks/"), "the handler"),
)


class Sampler:
    """Counts samples from `start` on. A process has one sampler, because it has one profiling timer."""

    def __init__(self) -> None:
        self.layers: Counter[str] = Counter()
        self.functions: Counter[str] = Counter()
        self._calls: dict[tuple[CodeType, int], bool] = {}
        self._names: dict[str, str | None] = {}

    def start(self) -> None:
        """Begin to sample. Only the main thread may call it: Python delivers signals there."""
        signal.signal(signal.SIGPROF, self._tick)
        signal.setitimer(signal.ITIMER_PROF, _INTERVAL, _INTERVAL)

    def as_json(self) -> dict[str, dict[str, int]]:
        """Return the samples by layer, and those of the busiest functions."""
        return {"layers": dict(self.layers), "functions": dict(self.functions.most_common(40))}

    def _tick(self, number: int, frame: FrameType | None) -> None:
        if frame is None:
            return
        if self._is_in_libpq(frame):
            self._count("psycopg and libpq", frame)
            return
        here: FrameType | None = frame
        while here is not None:
            if (layer := self._layer(here.f_code.co_filename)) is not None:
                self._count(layer, here)
                return
            here = here.f_back
        self._count("other", frame)

    def _count(self, layer: str, frame: FrameType) -> None:
        self.layers[layer] += 1
        code = frame.f_code
        self.functions[f"{Path(code.co_filename).name}:{code.co_qualname}"] += 1

    def _layer(self, file: str) -> str | None:
        """Return the layer of a file; None for the standard library, whose time is counted for its caller."""
        if file not in self._names:
            found = ((pattern.search(file), name) for pattern, name in _LAYERS)
            self._names[file] = next((match.expand(name) for match, name in found if match), None)
        return self._names[file]

    def _is_in_libpq(self, frame: FrameType) -> bool:
        key = (frame.f_code, frame.f_lasti)
        if key not in self._calls:
            self._calls[key] = _called_name(*key) in _OF_LIBPQ
        return self._calls[key]


def _called_name(code: CodeType, instruction: int) -> str:
    """Return the name of the function or method that an instruction calls, or an empty text."""
    for place, (line, last, begin, end) in enumerate(code.co_positions()):
        if place * 2 == instruction and line is not None and begin is not None and end is not None:
            text = linecache.getline(code.co_filename, line)
            segment = text[begin : end if last == line else len(text)]
            if match := _CALLED.search(segment.split("(", 1)[0] + "(" if "(" in segment else ""):
                return match[1]
    return ""
