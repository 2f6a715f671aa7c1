"""Helpers for tests of programs that use trioboss, and for its own.

database  temporary servers and databases
recorder  records the events of a boss
"""

from trioboss.testing.database import temporary_database as temporary_database
from trioboss.testing.database import temporary_server as temporary_server
from trioboss.testing.recorder import Recorder as Recorder
from trioboss.testing.recorder import record as record

__all__ = ["Recorder", "record", "temporary_database", "temporary_server"]
