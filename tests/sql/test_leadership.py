"""One boss leads: the owner of the lock, or, if that one is silent, the first candidate after its time is over."""

from uuid import uuid4

import attrs
import psycopg
import pytest

from trioboss.postgres.blocking import execute_blocking
from trioboss.postgres.operation import Batch, Operation
from trioboss.sql import Catalog
from trioboss.store import Context, make_store


@attrs.define(eq=False)
class Candidate:
    """A boss: its session and its id."""

    connection: psycopg.Connection
    session: bool = True
    boss: object = attrs.field(factory=uuid4)

    def leads(self, seconds=60.0) -> bool:
        presence = make_store(Context(Catalog("trioboss"))).presence
        statement = presence.poll_statement([], "", self.boss, seconds, session=self.session)

        def poll() -> Operation[bool]:
            return presence.read_poll((yield Batch((statement,)))).leads

        return execute_blocking(self.connection, poll(), self.connection)

    def fall_silent(self) -> None:
        """Its time is over, and its session lives on."""
        assert self.leads(seconds=-1)


@pytest.fixture
def candidates(dsn):
    """Three bosses that could lead."""
    connections = [psycopg.connect(dsn, autocommit=True) for _ in range(3)]
    yield [Candidate(connection) for connection in connections]
    for connection in connections:
        connection.close()


def test_the_first_leads_for_as_long_as_it_renews_its_time(candidates):
    first, second, third = candidates

    for _ in range(2):
        assert [first.leads(), second.leads(), third.leads()] == [True, False, False]


def test_when_the_leader_dies_another_one_leads_at_once(candidates):
    first, second, third = candidates
    assert first.leads()

    second.connection.execute("select pg_terminate_backend(%s, 10000)", [first.connection.info.backend_pid])

    assert [second.leads(), third.leads(), second.leads()] == [True, False, True]


def test_a_silent_leader_is_replaced_by_one_other_although_the_server_still_has_its_lock(candidates):
    first, second, third = candidates
    first.fall_silent()

    assert [second.leads(), third.leads(), second.leads()] == [True, False, True]


def test_a_silent_leader_that_polls_again_leads_again(candidates):
    first, second, _ = candidates
    first.fall_silent()
    assert second.leads()

    assert [first.leads(), second.leads()] == [True, False]


def test_the_substitute_of_a_silent_leader_can_fall_silent_too(candidates):
    first, second, third = candidates
    first.fall_silent()
    second.fall_silent()

    assert [third.leads(), second.leads()] == [True, False]


def test_without_sessions_time_alone_decides(candidates):
    for candidate in candidates:
        candidate.session = False
    first, second, third = candidates
    assert [first.leads(), second.leads()] == [True, False]

    first.fall_silent()

    assert [third.leads(), first.leads(), third.leads()] == [True, False, True]


def test_a_candidate_writes_nothing_while_another_one_leads(candidates):
    first, second, _ = candidates
    assert first.leads()
    row = second.connection.execute("select ctid, xmin, xmax, * from trioboss.leader").fetchall()

    assert not second.leads()

    assert second.connection.execute("select ctid, xmin, xmax, * from trioboss.leader").fetchall() == row


def test_no_candidate_waits_for_a_leader_that_is_about_to_commit(candidates):
    first, second, _ = candidates
    for candidate in candidates:
        candidate.session = False
    first.fall_silent()
    second.connection.execute("set statement_timeout = '5s'")

    with first.connection.transaction():
        assert first.leads()
        assert not second.leads()

    assert [first.leads(), second.leads()] == [True, False]


def test_the_holder_of_the_lock_goes_before_a_boss_that_has_only_the_time(candidates):
    behind_a_pooler, of_its_own, _ = candidates
    behind_a_pooler.session = False
    assert behind_a_pooler.leads()

    assert [of_its_own.leads(), behind_a_pooler.leads()] == [True, False]
