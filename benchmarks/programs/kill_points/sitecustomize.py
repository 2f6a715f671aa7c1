"""Lets a process stop for ever at one point of its code, where the harness kills it (`benchmarks.pipelines.killing`).

Python imports a module of this name at its start, if it is in the path: so the commands are started as users start
them, and Spark's Python workers have the point, too. `KILL_POINT` has it as JSON:

module, owner, name   the function; the owner is the class of a method, or empty
argument              only calls whose first argument is this one, or null
nth                   which of the calls
moment                before the call, after it, or while it runs
delay                 while it runs: so many seconds after it began
process               only in processes whose command line has this word in it
reached               the file that is created when the point is reached
"""

import functools
import importlib.abc
import importlib.util
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

POINT: dict[str, Any] | None = json.loads(os.environ.get("KILL_POINT", "null"))


def _stop(point: dict[str, Any]) -> None:
    Path(point["reached"]).touch()
    while True:  # the harness ends this process
        time.sleep(3600)


def _stopping(point: dict[str, Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the point in it."""
    calls = 0

    @functools.wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        first = arguments[1:2] if point["owner"] else arguments[:1]
        counts = point["argument"] is None or first == (point["argument"],)
        calls += counts
        if not counts or calls != point["nth"]:
            return function(*arguments, **options)
        if point["moment"] == "before":
            _stop(point)
        if point["moment"] == "during":
            threading.Timer(point["delay"], Path(point["reached"]).touch).start()
        returned = function(*arguments, **options)
        if point["moment"] == "after":
            _stop(point)
        return returned

    return called


class _Finder(importlib.abc.MetaPathFinder):
    """Changes the function when its module has been executed."""

    def __init__(self, point: dict[str, Any]) -> None:
        self._point = point

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the module of the point as Python does, with another loader."""
        if fullname != self._point["module"]:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            self._change(spec.loader)
        return spec

    def _change(self, loader: Any) -> None:
        execute = loader.exec_module

        def execute_and_change(module: ModuleType) -> None:
            execute(module)
            point = self._point
            owner = getattr(module, point["owner"]) if point["owner"] else module
            setattr(owner, point["name"], _stopping(point, getattr(owner, point["name"])))

        loader.exec_module = execute_and_change


if POINT is not None and POINT["process"] in " ".join(sys.orig_argv):
    sys.meta_path.insert(0, _Finder(POINT))
