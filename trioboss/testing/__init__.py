"""Helpers for tests of programs that use trioboss, and for its own."""

from trioboss.testing.database import temporary_database as temporary_database
from trioboss.testing.database import temporary_server as temporary_server

__all__ = ["temporary_database", "temporary_server"]
