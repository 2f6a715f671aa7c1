"""Finds the app that `module:name` names, and explains why it cannot be found."""

import importlib
import os
import sys
import traceback
from types import TracebackType

from trioboss.api.app import App
from trioboss.errors import UsageError

__all__ = ["load_app"]

_IMPORTING = (__name__, "importlib")


def load_app(path: str) -> App:
    """Import the module and return its app."""
    module_name, colon, name = path.partition(":")
    if not colon or not module_name or module_name.startswith("."):
        raise UsageError(f"app: {path!r} is not MODULE:APP, for instance myproject.jobs:app")
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        if not _is_missing(error, module_name):
            traceback.print_exception(error.with_traceback(_skip_importing(error.__traceback__)))
        raise UsageError(f"app: cannot import {module_name!r}: {error}") from None
    app = getattr(module, name, None)
    if not isinstance(app, App):
        apps = [f"{module_name}:{each}" for each, value in vars(module).items() if isinstance(value, App)]
        hint = f"use {' or '.join(apps)}" if apps else "the module has none"
        raise UsageError(f"app: {path!r} is not a trioboss.App: {hint}")
    return app


def _is_missing(error: Exception, module_name: str) -> bool:
    """Whether the module itself is missing, and not one that it imports."""
    return isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}.")


def _skip_importing(frames: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame of the user's own code on."""
    while frames is not None and frames.tb_frame.f_globals.get("__name__", "").startswith(_IMPORTING):
        frames = frames.tb_next
    return frames
