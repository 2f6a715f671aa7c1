"""The same transactions on a blocking connection of psycopg's."""

import secrets

import psycopg
import pytest
from postgres_helpers import ADD, ECHO, ONE, as_int, step
from psycopg.rows import dict_row
from psycopg.types.string import StrDumper

from trioboss.errors import UsageError
from trioboss.postgres import run_blocking
from trioboss.sql import Statement


@pytest.fixture
def own(server_dsn):
    """A connection of our own: in autocommit."""
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def theirs(server_dsn):
    """A caller's connection, as psycopg opens it."""
    connection = psycopg.connect(server_dsn)
    yield connection
    connection.close()


@pytest.fixture
def insert(own):
    """A statement that inserts a number into a table of this test's own."""
    name = "b_" + secrets.token_hex(6)
    own.execute(f"create table {name} (i int)")
    yield Statement(name, f"insert into {name} values ($1)", ("i",))
    own.execute(f"drop table {name}")


def stored(connection, insert) -> list[int]:
    return [i for (i,) in connection.execute(f"select i from {insert.name} order by i").fetchall()]


@pytest.mark.parametrize("prepare", [True, False])
def test_the_shape_of_the_results_is_the_same(own, prepare):
    results = run_blocking(own, [[step(ADD, 1, 2), step(ADD, 3, 4)], [], [step(ONE)]], prepare=prepare)

    assert [[as_int(result) for result in steps] for steps in results] == [[3, 7], [], [1]]
    assert results[0][0].fformat(0) == 1


def test_null_goes_and_comes_back_as_none(own):
    ((result,),) = run_blocking(own, [[step(ECHO, None)]], prepare=True)

    assert result.get_value(0, 0) is None


def test_in_autocommit_each_transaction_is_atomic_and_commits_by_itself(own, insert):
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        run_blocking(
            own,
            [[step(insert, 1)], [step(insert, 2), step(insert, "x")], [step(insert, 3)]],
            prepare=True,
        )

    assert stored(own, insert) == [1]


@pytest.mark.parametrize(("prepare", "names"), [(True, 1), (False, 0)])
def test_only_our_own_connections_prepare(own, prepare, names):
    for n in range(8):
        run_blocking(own, [[step(ADD, n, 1)]], prepare=prepare)

    count = "select count(*) from pg_prepared_statements where statement like '%int4%'"
    assert (names,) == own.execute(count).fetchone()


@pytest.mark.parametrize("spoil", ["discard all", "alter table {} add column extra int"])
def test_stale_statements_are_prepared_anew(server_dsn, own, insert, spoil):
    everything = Statement("everything", f"select * from {insert.name}", ())
    flush = [[step(insert, 1), step(everything)]]
    run_blocking(own, flush, prepare=True)
    with own.cursor() as cursor:
        # Behind psycopg's back, as another program or a pooler would.
        cursor.connection.pgconn.exec_(spoil.format(insert.name).encode())

    run_blocking(own, flush, prepare=True)

    assert stored(own, insert) == [1, 1]


def test_a_callers_transaction_is_joined(own, theirs, insert):
    theirs.execute("select 1")
    run_blocking(theirs, [[step(insert, 1), step(insert, 2)], [step(insert, 3)]], prepare=False)
    assert stored(own, insert) == []
    theirs.commit()

    assert stored(own, insert) == [1, 2, 3]


def test_the_transaction_that_psycopg_owes_the_caller_is_begun(own, theirs, insert):
    run_blocking(theirs, [[step(insert, 1)]], prepare=False)
    assert theirs.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    theirs.rollback()
    run_blocking(theirs, [[step(insert, 2), step(insert, 3)]], prepare=False)
    assert theirs.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    theirs.rollback()

    assert stored(own, insert) == []
    assert not theirs.autocommit


def test_a_callers_transaction_block_in_autocommit_is_joined(own, server_dsn, insert):
    with psycopg.connect(server_dsn, autocommit=True) as theirs, theirs.transaction(force_rollback=True):
        run_blocking(theirs, [[step(insert, 1)], [step(insert, 2)]], prepare=False)

    assert stored(own, insert) == []


def test_a_callers_pipeline_is_ridden(own, theirs, insert):
    with theirs.pipeline():
        theirs.execute("select 1")
        ((result,),) = run_blocking(theirs, [[step(ADD, 1, 2)]], prepare=False)
        run_blocking(theirs, [[step(insert, 1)]], prepare=False)
        cursor = theirs.execute("select 2")
        assert cursor.fetchone() == (2,)
    theirs.commit()

    assert as_int(result) == 3
    assert stored(own, insert) == [1]


def test_a_callers_row_factory_and_adapters_do_not_matter(theirs):
    theirs.row_factory = dict_row
    theirs.adapters.register_dumper(str, StrDumper)
    theirs.adapters.register_dumper(bytes, StrDumper)

    ((result,),) = run_blocking(theirs, [[step(ADD, 1, 2)]], prepare=False)

    assert as_int(result) == 3


def test_a_connection_in_another_encoding_is_refused(server_dsn):
    latin = psycopg.connect(server_dsn, client_encoding="latin1")
    with latin, pytest.raises(UsageError, match="LATIN1"):
        run_blocking(latin, [[step(ECHO, "ä")]], prepare=False)


@pytest.fixture
def pipelines_break(monkeypatch):
    def end_in_the_middle(self):
        raise psycopg.errors.AdminShutdown("gone")
        yield

    monkeypatch.setattr(psycopg.Pipeline, "_exit_gen", end_in_the_middle)


def test_a_callers_connection_is_the_callers_to_close(theirs, pipelines_break):
    with pytest.raises(psycopg.OperationalError):
        run_blocking(theirs, [[step(ONE), step(ONE)]], prepare=False)
    assert not theirs.closed


def test_what_broke_a_pipeline_is_not_hidden_behind_its_end(own, pipelines_break):
    with pytest.raises(psycopg.errors.AdminShutdown, match="gone"):
        run_blocking(own, [[step(ONE), step(ONE)]], prepare=True)
    assert own.closed
