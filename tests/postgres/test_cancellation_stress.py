"""Operations cancelled at random instants: the outcome that the caller sees must be the one in the database."""

import random
from collections import Counter
from collections.abc import Iterator

import attrs
import psycopg
import trio
from postgres_helpers import ECHO, Table, bind

from trioboss.postgres import BoundStatement, Connection, open_connection
from trioboss.sql import Statement

TASKS = 4
OPERATIONS = 1000

SLOW_ECHO = Statement("slow_echo", "select $1::text from pg_sleep($2::float8)", ("value", "seconds"))


@attrs.define(eq=False)
class Ledger:
    """The outcome of each numbered operation, as its caller saw it."""

    outcomes: dict[int, str] = attrs.field(factory=dict)
    kinds: dict[int, str] = attrs.field(factory=dict)
    counts: Counter[str] = attrs.field(factory=Counter)
    wrong: list[str] = attrs.field(factory=list)

    def record(self, number: int, kind: str, outcome: str) -> None:
        self.outcomes[number] = outcome
        self.kinds[number] = kind
        self.counts[f"{kind} {outcome}"] += 1


@attrs.define(eq=False)
class Operator:
    """One task with its own connection, which runs random operations."""

    dsn: str
    table: Table
    ledger: Ledger
    chance: random.Random
    numbers: Iterator[int]

    async def work(self) -> None:
        done = 0
        while done < OPERATIONS:
            async with open_connection(self.dsn) as connection:
                connection.cancel_retry = (
                    0.001  # so that cancel requests also hit runs of several transactions
                )
                while done < OPERATIONS and not connection.closed:
                    await self.operate(connection)
                    done += 1
                    await self.check(connection)

    async def operate(self, connection: Connection) -> None:
        kind = self.chance.choice(["query", "execute", "run", "statements", "transactions", "block"])
        number = next(self.numbers)
        outcome = "cancelled"
        with trio.move_on_after(self.chance.uniform(0, 0.004)):
            try:
                await getattr(self, kind)(connection, number)
                outcome = "done"
            except psycopg.errors.QueryCanceled:
                outcome = "second failed"
        self.ledger.record(number, kind, outcome)

    async def check(self, connection: Connection) -> None:
        """Check that an uncancelled query gets its own result, unless the connection is closed."""
        if connection.closed:
            self.ledger.counts["closed"] += 1
            return
        tag = str(self.chance.random())
        ((result,),) = await connection.run([[bind(ECHO, tag)]])
        self.expect(result.get_value(0, 0) == tag.encode(), "a query got the result of another one")

    def expect(self, truth: bool, problem: str) -> None:
        if not truth:
            self.ledger.wrong.append(problem)

    # A cancel request takes some milliseconds to arrive. The statements take about as long, so that some of them
    # complete before it and some do not.

    def duration(self) -> float:
        return self.chance.choice([0.0, self.chance.uniform(0, 0.006)])

    def insert(self, number: int, s: str) -> BoundStatement:
        text = f"insert into {self.table.name} select $1, $2 from pg_sleep($3::float8)"
        return bind(Statement("insert", text, ("i", "s", "seconds")), number, s, self.duration())

    async def query(self, connection: Connection, number: int) -> None:
        ((result,),) = await connection.run([[bind(SLOW_ECHO, number, self.duration())]])
        self.expect(result.get_value(0, 0) == str(number).encode(), "a query got the result of another one")

    async def execute(self, connection: Connection, number: int) -> None:
        cursor = await connection.execute(
            f"insert into {self.table.name} select %s, 'a' from pg_sleep(%s) returning i",
            [number, self.duration()],
        )
        self.expect(await cursor.fetchone() == (number,), "a query got the result of another one")

    async def run(self, connection: Connection, number: int) -> None:
        await connection.run([[self.insert(number, "a")]])

    async def statements(self, connection: Connection, number: int) -> None:
        await connection.run([[self.insert(number, "a"), self.insert(number, "b")]])

    async def transactions(self, connection: Connection, number: int) -> None:
        await connection.run([[self.insert(number, "a")], [bind(SLOW_ECHO, number, self.duration())]])

    async def block(self, connection: Connection, number: int) -> None:
        async with connection.transaction():
            await connection.run([[self.insert(number, "a")]])
            await connection.execute(f"insert into {self.table.name} values (%s, 'b')", [number])


EXPECTED = {"execute": "a", "run": "a", "transactions": "a", "statements": "ab", "block": "ab"}


async def test_no_outcome_is_ever_reported_wrongly(server_dsn, table):
    ledger = Ledger()
    numbers = iter(range(1_000_000))
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for seed in range(TASKS):
                operator = Operator(server_dsn, table, ledger, random.Random(seed), numbers)
                nursery.start_soon(operator.work)
    cursor = await table.admin.execute(f"select i, string_agg(s, '' order by s) from {table.name} group by i")
    stored = dict(await cursor.fetchall())

    for number, outcome in ledger.outcomes.items():
        kind = ledger.kinds[number]
        expected = "" if outcome == "cancelled" else EXPECTED.get(kind, "")
        if stored.get(number, "") != expected or (outcome == "second failed" and kind != "transactions"):
            ledger.wrong.append(f"{kind} {outcome}, but stored is {stored.get(number)!r}")

    assert ledger.wrong[:10] == []
    assert len(ledger.outcomes) == TASKS * OPERATIONS
    # The test proves something only if some operations were cancelled and some completed.
    for kind in ("query", *EXPECTED):
        assert ledger.counts[f"{kind} cancelled"] > 10, ledger.counts
        assert ledger.counts[f"{kind} done"] > 10, ledger.counts
    assert ledger.counts["closed"] < 10, ledger.counts
