"""Sessions to work with: our own and two callers, in one database for each file, emptied for each test."""

import pytest
from lifecycle_sessions import Sessions

from trioboss.testing import temporary_database


@pytest.fixture(scope="module")
def module_sessions(server_dsn, template):
    with temporary_database(server_dsn, template) as dsn:
        sessions = Sessions.open(dsn)
        yield sessions
        sessions.close()


@pytest.fixture
def sessions(module_sessions):
    module_sessions.clear()
    return module_sessions
