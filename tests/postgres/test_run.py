"""`Connection.run`: transactions of prepared statements in one round trip."""

from contextlib import suppress

import psycopg
import pytest
import trio
from postgres_helpers import ADD, ECHO, ONE, as_int, bind, is_usable

from trioboss.postgres import BoundStatement, Connection, open_connection
from trioboss.sql import Statement


async def prepared_names(connection) -> set[str]:
    cursor = await connection.execute("select name from pg_prepared_statements")
    return {name for (name,) in await cursor.fetchall()}


async def test_a_statement_returns_its_result_in_binary(conn):
    ((result,),) = await conn.run([[bind(ADD, 40, 2)]])

    assert result.get_value(0, 0) == b"\x00\x00\x00\x2a"
    assert result.fformat(0) == 1


async def test_there_is_one_list_of_results_for_each_transaction_and_one_result_for_each_statement(conn):
    results = await conn.run([[bind(ADD, 1, 2), bind(ADD, 3, 4)], [], [bind(ONE)]])

    assert [[as_int(result) for result in transaction] for transaction in results] == [[3, 7], [], [1]]


async def test_a_run_without_transactions_returns_no_results(conn):
    assert await conn.run([]) == []


async def test_none_is_sent_and_returned_as_null(conn):
    ((result,),) = await conn.run([[bind(ECHO, None)]])

    assert result.get_value(0, 0) is None


async def test_each_transaction_commits_by_itself(conn, table):
    await conn.run([[bind(table.insert, 1, "a"), bind(table.insert, 2, "b")], [bind(table.insert, 3, "c")]])

    assert await table.rows() == [1, 2, 3]
    cursor = await table.admin.execute(f"select xmin::text, count(*)::int from {table.name} group by 1")
    assert sorted(count for _, count in await cursor.fetchall()) == [1, 2]


async def test_a_failing_statement_rolls_back_its_transaction_and_no_other(conn, table):
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        await conn.run(
            [
                [bind(table.insert, 1, "a")],
                [bind(table.insert, 2, "b"), bind(table.insert, "x", "c")],
                [bind(table.insert, 4, "d")],
            ]
        )

    assert await table.rows() == [1, 4]
    assert await is_usable(conn)


async def test_the_first_error_is_the_one_that_is_raised(conn):
    division = Statement("division", "select 1 / $1::int", ("by",))

    with pytest.raises(psycopg.errors.DivisionByZero) as caught:
        await conn.run([[bind(ONE)], [bind(division, 0)], [bind(ADD, "x", 1)]])

    assert caught.value.__notes__ == ["in statement 'division'"]


async def test_a_failing_implicit_commit_is_an_error(conn, table):
    await table.admin.execute(f"alter table {table.name} add unique (i) deferrable initially deferred")
    twice = Statement("twice", f"insert into {table.name} values ($1), ($1)", ("i",))

    for _ in range(2):  # first in a pipeline with its Parse, then prepared and without a pipeline
        with pytest.raises(psycopg.errors.UniqueViolation):
            await conn.run([[bind(twice, 1)]])

    assert await table.rows() == []
    assert await is_usable(conn)


async def test_a_statement_is_prepared_once_under_its_own_name(conn):
    for _ in range(3):
        await conn.run([[bind(ADD, 1, 1)]])

    assert {"add"} == await prepared_names(conn)


async def test_a_statement_used_twice_in_a_transaction_is_prepared_once(conn):
    await conn.run([[bind(ADD, 1, 1), bind(ADD, 2, 2)]])

    assert {"add"} == await prepared_names(conn)


async def test_a_statement_that_cannot_be_prepared_is_not_recorded_as_prepared(conn, table):
    later = Statement("later", f"select count(*)::int4 from {table.name}_later", ())
    with pytest.raises(psycopg.errors.UndefinedTable):
        await conn.run([[bind(later)]])
    await table.admin.execute(f"create table {table.name}_later ()")

    async with conn.transaction():  # where a stale statement would not be repeated
        ((result,),) = await conn.run([[bind(later)]])

    assert as_int(result) == 0
    await table.admin.execute(f"drop table {table.name}_later")


async def test_a_transaction_does_not_depend_on_a_parse_in_a_failed_one(conn):
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        await conn.run([[bind(ADD, "x", 1), bind(ONE)], [bind(ONE)]])

    ((result,),) = await conn.run([[bind(ONE)]])
    assert as_int(result) == 1


async def test_statements_of_the_same_name_and_different_text_are_distinguished(conn):
    other = Statement("one", "select 2", ())

    results = [await conn.run([[bind(statement)]]) for statement in (ONE, other, ONE, other)]

    assert [as_int(result) for ((result,),) in results] == [1, 2, 1, 2]


async def test_a_name_longer_than_the_server_compares_is_shortened(conn):
    long = [Statement("x" * 70 + str(n), f"select {n}", ()) for n in range(2)]

    results = await conn.run([[bind(statement) for statement in long]])

    assert [as_int(result) for result in results[0]] == [0, 1]


@pytest.mark.parametrize("command", ["discard all", "deallocate all"])
async def test_statements_that_were_deallocated_are_prepared_again(conn, table, command):
    transactions = [[bind(table.insert, 1, "a"), bind(ADD, 1, 1)]]
    await conn.run(transactions)
    await conn.execute(command)

    results = await conn.run(transactions)

    assert [as_int(result) for result in results[0]] == [1, 2]
    assert await table.rows() == [1, 1]


async def test_a_statement_whose_columns_changed_is_prepared_again(conn, table):
    everything = Statement("everything", f"select * from {table.name}", ())
    await conn.run([[bind(everything)]])
    await table.admin.execute(f"alter table {table.name} add column extra int")

    ((result,),) = await conn.run([[bind(everything)]])

    assert result.nfields == 3


async def test_a_run_is_not_repeated_after_one_of_its_transactions_was_committed(conn, table):
    await conn.run([[bind(ADD, 1, 1)]])
    await conn.execute("deallocate all")

    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        await conn.run([[bind(ADD, 1, 1)], [bind(table.insert, 1, "a")]])

    assert await table.rows() == [1]
    assert as_int((await conn.run([[bind(ADD, 2, 3)]]))[0][0]) == 5


async def test_a_stale_statement_is_not_repeated_inside_a_transaction_block(conn):
    await conn.run([[bind(ADD, 1, 1)]])
    await conn.execute("deallocate all")

    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        async with conn.transaction():
            await conn.run([[bind(ADD, 1, 1)]])

    assert as_int((await conn.run([[bind(ADD, 2, 3)]]))[0][0]) == 5


async def test_statements_that_psycopg_deallocates_are_prepared_again(server_dsn, conn):
    async with await Connection.connect(server_dsn, autocommit=True, prepare_threshold=0) as connection:
        await connection.run([[bind(ADD, 1, 1)]])
        await connection.execute("select 1")
        async with connection.transaction(force_rollback=True):
            pass  # psycopg now deallocates all statements of the session
        async with connection.transaction():
            ((result,),) = await connection.run([[bind(ADD, 1, 1)]])

    assert as_int(result) == 2


async def test_inside_a_transaction_block_nothing_commits_before_its_end(conn, table):
    with suppress(ZeroDivisionError):
        async with conn.transaction():
            await conn.run([[bind(table.insert, 1, "a")], [bind(table.insert, 2, "b")]])
            raise ZeroDivisionError
    assert await table.rows() == []

    async with conn.transaction():
        await conn.run([[bind(table.insert, 1, "a")], [bind(table.insert, 2, "b")]])

    assert await table.rows() == [1, 2]


async def test_without_autocommit_the_implicit_transaction_of_psycopg_is_begun(server_dsn, table):
    async with await Connection.connect(server_dsn) as connection:
        await connection.run([[bind(table.insert, 1, "a")], [bind(table.insert, 2, "b")]])
        assert await table.rows() == []
        await connection.rollback()
        await connection.run([[bind(table.insert, 3, "c")]])
        await connection.run([[bind(table.insert, 4, "d")]])
        await connection.commit()

    assert await table.rows() == [3, 4]


async def test_the_result_of_an_implicit_begin_is_not_among_the_results(server_dsn):
    async with await Connection.connect(server_dsn) as connection:
        for _ in range(2):  # the second time the statement is prepared
            ((result,),) = await connection.run([[bind(ADD, 20, 22)]])
            await connection.commit()

    assert as_int(result) == 42


async def test_the_implicit_begin_keeps_the_isolation_level(server_dsn):
    level = Statement("level", "select current_setting('transaction_isolation')", ())
    async with await Connection.connect(server_dsn) as connection:
        await connection.set_isolation_level(psycopg.IsolationLevel.SERIALIZABLE)
        ((result,),) = await connection.run([[bind(level)]])

    assert result.get_value(0, 0) == b"serializable"


async def test_a_run_larger_than_every_socket_buffer_completes(conn):
    blob = "x" * 200_000

    with trio.fail_after(60):
        results = await conn.run([[bind(ECHO, blob), bind(ECHO, blob)] for _ in range(20)])

    assert [[len(result.get_value(0, 0)) for result in transaction] for transaction in results] == [
        [200_000] * 2
    ] * 20


async def test_a_thousand_transactions_run_in_one_round_trip(conn, table):
    await conn.run([[bind(table.insert, n, "x")] for n in range(1000)])

    assert list(range(1000)) == await table.rows()


async def test_after_a_parameter_that_is_not_bytes_nothing_is_committed(conn, table):
    wrong = BoundStatement(table.insert, ["7", "not bytes"])
    with pytest.raises(TypeError):
        await conn.run([[bind(table.insert, 1, "a"), wrong]])

    assert conn.closed or await is_usable(conn)
    assert await table.rows() == []


async def test_a_copy_statement_is_refused(conn, table):
    with trio.fail_after(60), pytest.raises(psycopg.Error):
        await conn.run([[bind(Statement("copy", f"copy {table.name} from stdin", ()))]])

    assert conn.closed or await is_usable(conn)


async def test_run_inside_psycopgs_pipeline_is_refused(conn):
    async with conn.pipeline():
        with pytest.raises(psycopg.ProgrammingError, match="run_in_caller"):
            await conn.run([[bind(ONE)]])

    assert await is_usable(conn)


async def test_several_tasks_share_a_connection(conn):
    got: dict[int, int] = {}

    async def ask(n):
        got[n] = as_int((await conn.run([[bind(ADD, n, 1000)]]))[0][0])

    async with trio.open_nursery() as nursery:
        for n in range(50):
            nursery.start_soon(ask, n)

    assert {n: n + 1000 for n in range(50)} == got


async def test_the_loss_of_the_connection_is_raised_with_the_servers_error(conn):
    terminate = Statement("terminate", "select pg_terminate_backend(pg_backend_pid())", ())

    with pytest.raises(psycopg.errors.AdminShutdown):
        await conn.run([[bind(terminate)], [bind(ONE)]])

    assert conn.closed
    with pytest.raises(psycopg.OperationalError):
        await conn.run([[bind(ONE)]])


async def test_with_prepare_false_nothing_is_prepared_under_a_name(server_dsn, table):
    async with open_connection(server_dsn, prepare=False) as connection:
        for n in range(8):
            await connection.run([[bind(table.insert, n, "a")]])
            await connection.run([[bind(ADD, n, 1)], [bind(ADD, n, 2), bind(ONE)]])
            await connection.execute("select %s::int", [n])

        assert set() == await prepared_names(connection)
    assert list(range(8)) == await table.rows()
