"""Operations cancelled at random instants: whatever the caller was told must be what the database holds."""

import random
from collections import Counter
from collections.abc import Iterator

import attrs
import psycopg
import trio
from postgres_helpers import ECHO, Table, step

from trioboss.postgres import BoundStatement, Connection, open_connection
from trioboss.sql import Statement

TASKS = 4
OPERATIONS = 1000

SLOW_ECHO = Statement("slow_echo", "select $1::text from pg_sleep($2::float8)", ("value", "seconds"))


@attrs.define(eq=False)
class Ledger:
    """What the callers were told about each numbered operation."""

    told: dict[int, str] = attrs.field(factory=dict)
    kinds: dict[int, str] = attrs.field(factory=dict)
    counts: Counter[str] = attrs.field(factory=Counter)
    wrong: list[str] = attrs.field(factory=list)

    def tell(self, number: int, kind: str, outcome: str) -> None:
        self.told[number] = outcome
        self.kinds[number] = kind
        self.counts[f"{kind} {outcome}"] += 1


@attrs.define(eq=False)
class Operator:
    """One task with a connection of its own, which carries out random operations."""

    dsn: str
    table: Table
    ledger: Ledger
    chance: random.Random
    numbers: Iterator[int]

    async def work(self) -> None:
        done = 0
        while done < OPERATIONS:
            async with open_connection(self.dsn) as connection:
                connection.cancel_retry = 0.001  # so that cancel requests do meet several transactions
                while done < OPERATIONS and not connection.closed:
                    await self.operate(connection)
                    done += 1
                    await self.check(connection)

    async def operate(self, connection: Connection) -> None:
        kind = self.chance.choice(["ask", "execute", "run", "steps", "flush", "block"])
        number = next(self.numbers)
        outcome = "cancelled"
        with trio.move_on_after(self.chance.uniform(0, 0.004)):
            try:
                await getattr(self, kind)(connection, number)
                outcome = "done"
            except psycopg.errors.QueryCanceled:
                outcome = "follow_up failed"
        self.ledger.tell(number, kind, outcome)

    async def check(self, connection: Connection) -> None:
        """An undisturbed question gets its own answer, if the connection is not closed."""
        if connection.closed:
            self.ledger.counts["closed"] += 1
            return
        tag = str(self.chance.random())
        ((result,),) = await connection.run([[step(ECHO, tag)]])
        self.expect(result.get_value(0, 0) == tag.encode(), "a result went to another query")

    def expect(self, truth: bool, problem: str) -> None:
        if not truth:
            self.ledger.wrong.append(problem)

    # A cancel request takes some milliseconds to arrive, so the statements take about as long: that is when
    # it matters whether they completed.

    def duration(self) -> float:
        return self.chance.choice([0.0, self.chance.uniform(0, 0.006)])

    def insert(self, number: int, s: str) -> BoundStatement:
        text = f"insert into {self.table.name} select $1, $2 from pg_sleep($3::float8)"
        return step(Statement("insert", text, ("i", "s", "seconds")), number, s, self.duration())

    async def ask(self, connection: Connection, number: int) -> None:
        ((result,),) = await connection.run([[step(SLOW_ECHO, number, self.duration())]])
        self.expect(result.get_value(0, 0) == str(number).encode(), "a result went to another query")

    async def execute(self, connection: Connection, number: int) -> None:
        cursor = await connection.execute(
            f"insert into {self.table.name} select %s, 'a' from pg_sleep(%s) returning i",
            [number, self.duration()],
        )
        self.expect(await cursor.fetchone() == (number,), "a result went to another query")

    async def run(self, connection: Connection, number: int) -> None:
        await connection.run([[self.insert(number, "a")]])

    async def steps(self, connection: Connection, number: int) -> None:
        await connection.run([[self.insert(number, "a"), self.insert(number, "b")]])

    async def flush(self, connection: Connection, number: int) -> None:
        await connection.run([[self.insert(number, "a")], [step(SLOW_ECHO, number, self.duration())]])

    async def block(self, connection: Connection, number: int) -> None:
        async with connection.transaction():
            await connection.run([[self.insert(number, "a")]])
            await connection.execute(f"insert into {self.table.name} values (%s, 'b')", [number])


EXPECTED = {"execute": "a", "run": "a", "flush": "a", "steps": "ab", "block": "ab"}


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

    for number, outcome in ledger.told.items():
        kind = ledger.kinds[number]
        expected = "" if outcome == "cancelled" else EXPECTED.get(kind, "")
        if stored.get(number, "") != expected or (outcome == "follow_up failed" and kind != "flush"):
            ledger.wrong.append(f"{kind} {outcome}, but stored is {stored.get(number)!r}")

    assert ledger.wrong[:10] == []
    assert len(ledger.told) == TASKS * OPERATIONS
    # A test in which nothing was interrupted, or nothing completed, would prove nothing.
    for kind in ("ask", *EXPECTED):
        assert ledger.counts[f"{kind} cancelled"] > 10, ledger.counts
        assert ledger.counts[f"{kind} done"] > 10, ledger.counts
    assert ledger.counts["closed"] < 10, ledger.counts
