"""A desk to work at: our own session and two callers, in one database for each file, emptied for each test."""

import pytest
from lifecycle_desk import Desk

from trioboss.testing import temporary_database


@pytest.fixture(scope="module")
def module_desk(server_dsn, template):
    with temporary_database(server_dsn, template) as dsn:
        desk = Desk.open(dsn)
        yield desk
        desk.close()


@pytest.fixture
def desk(module_desk):
    module_desk.clear()
    return module_desk
